"""A property that is computed once."""


class once:
    """``functools.cached_property`` as it is from Python 3.12 on: without a lock.

    Before, all objects of a class share a lock, which is held while one of them computes the property. A child that is
    forked at that moment waits for this lock for ever.
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
