"""Any geometry, dtype and strides, one thread or block for each element of the result; what no other family takes."""


def suits(task):
    return True
