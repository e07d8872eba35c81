"""A property that is computed once."""


class once:
    """``functools.cached_property`` as in Python 3.12 and later: without a lock.

    In earlier versions all objects of a class share a lock, which is held while one of them computes the property. A
    child that is forked at that moment waits for this lock forever.
    """

    def __init__(self, function):
        self._function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = self._function(instance)
        instance.__dict__[self._name] = value  # Python looks there first from now on
        return value
