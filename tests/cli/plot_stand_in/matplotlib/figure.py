"""A figure that draws nothing, and writes bytes that are no picture."""


class Axes:
    def __getattr__(self, name):
        return lambda *arguments, **keywords: None


class Figure:
    def __init__(self, **keywords):
        self.canvas = self

    def get_supported_filetypes(self):
        return {"png": "a picture"}

    def subfigures(self, rows, columns, **keywords):
        return [self] * rows

    def subplots(self, rows, columns):
        return [Axes()] * columns if rows == 1 else [[Axes()] * columns] * rows

    def suptitle(self, text):
        pass

    def savefig(self, file, dpi, format):
        file.write(b"\x89PNG" + bytes(30_000))
