"""Tasks made into others: a problem becomes another problem, with copies of arrays before and after its kernel."""
