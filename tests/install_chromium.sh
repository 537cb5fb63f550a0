#!/bin/sh
# Installs Chromium, which the tests of the page drive, from the packages of a Debian-like system, unless it is there.
# Where that cannot be done, one line says why. It asks no question, and an offline machine is given up on in time:
# only what is fetched has a limit, so that an installation that has begun is never cut short. With --check it only
# tells by its exit code whether Chromium is there.
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && exit 0
[ "$1" = --check ] && exit 1

fail() {
    echo "Chromium is not installed, and cannot be installed by itself here: $1" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get; install it with your system's packages"
if [ "$(id -u)" = 0 ]; then
    sudo=
elif sudo -n true 2>/dev/null; then
    sudo="sudo -n"
else
    fail "that needs root; run 'sudo make browser'"
fi

apt="apt-get -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60"
install="install -y --no-install-recommends chromium"
echo "Installing Chromium, which the tests of the page drive ..."
{
    $sudo timeout 120 $apt update && $sudo timeout 300 $apt --download-only $install
} >/dev/null || fail "its packages could not be fetched; run 'make browser' when they can"
$sudo env DEBIAN_FRONTEND=noninteractive $apt --no-download $install >/dev/null || fail "apt-get could not install it"
