#!/usr/bin/env bash
# The libraries of Debian 11, to build a wheel for older systems on Debian 12: bash packaging/sysroot.sh FOLDER
#
# A module that is linked with this machine's glibc runs only with a glibc as new as this one. The folder gets glibc 2.31
# and the libgomp of GCC 10. They bring the modules of build.sh to manylinux_2_28 and below. Nothing is installed: apt
# downloads and verifies the packages, and dpkg-deb unpacks them. The images of manylinux need no such folder.
set -euo pipefail
mkdir -p "$1"
root=$(cd "$1" && pwd)
machine=$(uname -m)
libraries=$root/usr/lib/$machine-linux-gnu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt reads it as another user
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null)
apt+=(-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -qq)
mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -1)
echo "deb ${mirror:?no mirror of Debian is known here} bullseye main" > "$work/sources.list"
cd "$work"
apt-get "${apt[@]}" update
apt-get "${apt[@]}" download {libc6,libc6-dev,libcrypt1,libcrypt-dev,linux-libc-dev,libgomp1}/bullseye
for package in *.deb; do
    dpkg-deb -x "$package" "$root"
done
# Absolute links would lead out of the folder.
find "$root" -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -snfr "$root$(readlink "$link")" "$link"
done
ln -sf libgomp.so.1 "$libraries/libgomp.so"
# For the list of bundled software: packaging/bundled.py.
dpkg-deb -W --showformat='pkg:deb/debian/${Package}@${Version}?arch=${Architecture}\n' libgomp1_*.deb \
    > "$libraries/libgomp.so.1.purl"
