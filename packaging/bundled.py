"""Writes the list of bundled software of a wheel, in CycloneDX's format, where PEP 770 looks for it.

``python packaging/bundled.py UNPACKED_WHEEL LIBGOMP``. auditwheel writes such a list only for libraries that it bundles
itself, and repair.sh bundles libgomp. A file LIBGOMP.purl names the origin of LIBGOMP. Without one, it is the package
of this machine that owns the file.
"""

import hashlib
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote

LICENCE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def origin(library):
    """The package URL of the software that a library belongs to."""
    told = library.with_name(f"{library.name}.purl")
    if told.exists():
        return told.read_text().strip()
    from auditwheel._vendor.whichprovides import whichprovides

    provided = whichprovides([str(library)])
    if not provided:
        raise SystemExit(f"bundled.py: no package owns {library}, and there is no {told.name}")
    return provided[str(library)].purl


def components(unpacked, library):
    """The wheel and its copy of libgomp, as CycloneDX names them."""
    (info,) = unpacked.glob("*.dist-info")
    name, number = info.name.removesuffix(".dist-info").split("-")
    wheel = {"type": "library", "bom-ref": name, "name": name, "version": number}
    purl = origin(library)
    software, release = re.search(r"([^/]+)@([^?]+)", purl).groups()
    copy = unpacked / "convgrad_cy.libs" / "libgomp.so.1"
    return wheel | {"purl": f"pkg:pypi/{name}@{number}"}, {
        "type": "library",
        "bom-ref": "libgomp",
        "name": software,
        "version": unquote(release),
        "purl": purl,
        "licenses": [{"expression": LICENCE}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(copy.read_bytes()).hexdigest()}],
        "properties": [{"name": "file", "value": copy.relative_to(unpacked).as_posix()}],
    }


def main(unpacked, library):
    wheel, libgomp = components(unpacked, library)
    (info,) = unpacked.glob("*.dist-info")
    target = info / "sboms" / "bundled.cdx.json"
    target.parent.mkdir(exist_ok=True)
    text = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": wheel},
        "components": [libgomp],
        "dependencies": [{"ref": wheel["bom-ref"], "dependsOn": [libgomp["bom-ref"]]}],
    }
    target.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
