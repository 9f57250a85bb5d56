#!/bin/sh
# A Docker engine for tests: Debian's docker.io on a socket of its own, with a stand-in for NVIDIA's hook and two images
# that need no registry. Works as root without systemd; running it again finds the engine that is there.
#
#   eval "$(.ci/docker.sh)"        start where needed; prints `export DOCKER_HOST=…` and the names of the images
#   .ci/docker.sh stop             end the engine that was started here
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
home=${OARLOCK_DOCKER_HOME:-/var/tmp/oarlock-docker-$(id -u)}
socket=unix://$home/docker.sock

# A bridge of our own: published ports need one, and the usual docker0 may be another engine's, or be left over.
bridge=oarlock-ci0

if [ "${1:-start}" = stop ]; then
    pid=$(cat "$home/pid" 2>/dev/null || true)
    if [ -n "$pid" ] && kill "$pid" 2>/dev/null; then
        tries=0
        while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.2
        done
    fi
    ip link delete $bridge 2>/dev/null || true
    exit 0
fi

docker_cli() { "$cli" -H "$socket" "$@"; }

find_programs() {
    dockerd=$(command -v dockerd || echo /usr/sbin/dockerd)
    # Debian's client belongs to Debian's engine; another on PATH may refuse its API version.
    cli=/usr/bin/docker
    [ -x "$cli" ] || cli=$(command -v docker || true)
}

find_programs
if [ ! -x "$dockerd" ] || [ -z "$cli" ] || ! command -v busybox >/dev/null || ! command -v ip >/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io busybox-static iproute2 >&2
    find_programs
fi

mkdir -p "$home/bin"
(
    # One at a time: two test runs may start together.
    flock 9
    if ! docker_cli version >/dev/null 2>&1; then
        install -m 755 "$here/nvidia-container-runtime-hook" "$home/bin/"
        rm -f "$home/pid" "$home/docker.sock"
        network="--bridge none"
        if ip link show $bridge >/dev/null 2>&1 || {
            ip link add $bridge type bridge && ip addr add 172.31.250.1/24 dev $bridge && ip link set $bridge up
        } >&2; then
            network="--bridge $bridge"
        fi
        PATH=$home/bin:/usr/sbin:/sbin:$PATH setsid "$dockerd" \
            --data-root "$home/data" --exec-root "$home/exec" --host "$socket" --pidfile "$home/pid" \
            $network --iptables=false --ip6tables=false >"$home/log" 2>&1 9>&- </dev/null &
        tries=0
        until docker_cli version >/dev/null 2>&1; do
            tries=$((tries + 1))
            if [ $tries -gt 150 ]; then
                echo "dockerd does not start; the end of $home/log:" >&2
                tail -n 20 "$home/log" >&2
                exit 1
            fi
            sleep 0.2
        done
    fi

    python=$here/../.venv/bin/python
    if [ -x "$python" ] && ! docker_cli image inspect oarlock-nats:test >/dev/null 2>&1; then
        context=$(mktemp -d)
        cp "$("$python" -c 'from oarlock_runtime.embedded import server_binary; print(server_binary())')" \
            "$context/nats-server"
        cp "$here/../deploy/nats/Dockerfile" "$context/"
        DOCKER_BUILDKIT=0 "$cli" -H "$socket" build -q -t oarlock-nats:test "$context" >&2
        rm -rf "$context"
    fi

    if ! docker_cli image inspect oarlock-test-busybox:1 >/dev/null 2>&1; then
        context=$(mktemp -d)
        mkdir "$context/bin"
        cp "$(command -v busybox)" "$context/bin/busybox"
        for applet in sh sleep cat ls env echo id dd head tail touch stat test true false seq; do
            ln -s busybox "$context/bin/$applet"
        done
        printf 'FROM scratch\nCOPY bin /bin\nENV PATH=/bin\nCMD ["/bin/sh"]\n' >"$context/Dockerfile"
        DOCKER_BUILDKIT=0 "$cli" -H "$socket" build -q -t oarlock-test-busybox:1 "$context" >&2
        rm -rf "$context"
    fi
) 9>"$home/lock"

echo "export DOCKER_HOST=$socket"
echo "export OARLOCK_TEST_IMAGE=oarlock-test-busybox:1"
echo "export OARLOCK_NATS_IMAGE=oarlock-nats:test"
