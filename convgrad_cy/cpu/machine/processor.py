"""The vendor, family and model of this processor."""


def processor(path="/proc/cpuinfo"):
    """(vendor, family, model) of an x86 processor, such as ("AuthenticAMD", 25, 17); None if unknown."""
    found = {}
    try:
        with open(path, errors="replace") as file:
            for line in file:
                name, colon, value = line.partition(":")
                if not colon:  # an empty line ends the lines of the first processor
                    break
                found[name.strip()] = value.strip()
        return found["vendor_id"], int(found["cpu family"]), int(found["model"])
    except (OSError, KeyError, ValueError):
        return None
