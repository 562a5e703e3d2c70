#!/bin/bash
# Record the demo case for real: a developer installs packages, update-initramfs runs the hook script
# /usr/share/initramfs-tools/hooks/kmod, and a rule that looks for "kmod" in the command line takes that
# for a module load. Nothing in evidence/ is written by hand.
#
# usage, as root on a throwaway Debian 12 machine (x86_64) whose apt works over plain http:   ./record.sh
# It replaces evidence/, alert.json and truth.json next to it. About six minutes. keep_lab=1 keeps the raw recording.
#
# What stands where, all in private namespaces, so nothing of it listens on the recording machine's network:
#   devbox-mara 10.20.0.11  a debootstrap'ed system: sshd, rsyslogd, cron; every process followed by sensor.py
#   proxy01     10.20.0.5   squid, outside that system: root on devbox-mara cannot touch its log
#   clients     10.20.0.31 mara, .42 jonas, .66 a password guesser, .43 another machine that uses the proxy
# The addresses sit on the loopback of one private network namespace.
# The system's apt knows only http://deb.example.org; the proxy maps that name to the mirror that the recording
# machine's apt uses, so no name of that mirror can reach any log and nothing has to be rewritten afterwards.
set -euo pipefail
case_dir=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" != inside ]; then
    [ "$(id -u)" = 0 ] && [ "$(uname -m)" = x86_64 ] || { echo "needs root on x86_64" >&2; exit 1; }
    apt-get -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
        debootstrap squid socat openssh-client iproute2 curl util-linux python3
    lab=$(mktemp -d)
    chmod 755 "$lab"
    export lab
    cleanup() {
        [ -z "${bridge:-}" ] || kill "$bridge" 2>/dev/null || true
        [ -n "${keep_lab:-}" ] && echo "raw recording kept: $lab" || rm -rf --one-file-system "$lab"
    }
    trap cleanup EXIT

    # The mirror, from this machine's apt. Its path must be Debian's usual one, because the path is seen in the logs.
    export mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Release: bookworm' | head -n1)
    mirror_host=$(echo "$mirror" | sed -n 's#^http://\([^/:]*\)/debian/$#\1#p')
    [ -n "$mirror_host" ] || { echo "apt here does not use http://HOST/debian/: adapt the squid part" >&2; exit 1; }
    export mirror_host

    # --- the system, before anyone looks -----------------------------------------------------------------------
    root=$lab/root
    debootstrap --variant=minbase bookworm "$root" "$mirror" >"$lab/debootstrap.log"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # apt settings of this machine that the mirror may need (dates); seen in no recorded file
    apt-config dump | grep -E '^Acquire::Check-(Valid-Until|Date) ' >"$root/etc/apt/apt.conf.d/10dates" || true
    sources() {
        printf 'deb http://%s/debian bookworm main\ndeb http://%s/debian bookworm-updates main\n' "$1" "$1"
        printf 'deb http://%s/debian-security bookworm-security main\n' "$1"
    }
    sources "$mirror_host" >"$root/etc/apt/sources.list"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
    unshare --mount --uts --pid --fork sh -ec '
        mount -t proc proc "$1/proc"; hostname devbox-mara; mount -t tmpfs tmpfs "$1/run"
        mount --bind /dev "$1/dev"
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C
        chroot "$1" apt-get -q update
        # a kernel and initramfs-tools belong to a normal machine: the recorded install only triggers the rebuild
        chroot "$1" apt-get -q -y --no-install-recommends upgrade
        chroot "$1" apt-get -q -y --no-install-recommends install openssh-server sudo rsyslog cron logrotate git make gcc \
            libc6-dev python3 vim-tiny less procps kmod udev busybox initramfs-tools linux-image-amd64 zstd
        chroot "$1" apt-get clean
    ' sh "$root" >"$lab/image.log" 2>&1 || { tail "$lab/image.log"; exit 1; }
    sources deb.example.org >"$root/etc/apt/sources.list"
    echo 'Acquire::http::Proxy "http://10.20.0.5:3128";' >"$root/etc/apt/apt.conf.d/20proxy"
    rm -rf "$root"/var/lib/apt/lists/* "$root/etc/resolv.conf"
    # the logs of the build name nothing of use: the recorded logs begin with the recorded day's work
    rm -f "$root"/var/log/apt/* && : >"$root/var/log/dpkg.log"

    echo devbox-mara >"$root/etc/hostname"
    printf '127.0.0.1 localhost\n10.20.0.11 devbox-mara\n10.20.0.5 proxy01\n' >"$root/etc/hosts"
    echo 'debconf debconf/priority select critical' | chroot "$root" debconf-set-selections
    # rsyslog: classic time format, no kernel log (it would be the recording machine's)
    sed -i -e '/imklog/d' -e '1i $ActionFileDefaultTemplate RSYSLOG_TraditionalFileFormat' "$root/etc/rsyslog.conf"
    printf 'UseDNS no\nPrintMotd no\nListenAddress 10.20.0.11\n' >"$root/etc/ssh/sshd_config.d/devbox.conf"
    for user in mara jonas; do
        chroot "$root" useradd -m -s /bin/bash "$user"
        ssh-keygen -q -t ed25519 -N '' -C "$user" -f "$lab/$user.key"
        install -d -m 700 "$root/home/$user/.ssh"
        cp "$lab/$user.key.pub" "$root/home/$user/.ssh/authorized_keys"
        chroot "$root" chown -R "$user:$user" "/home/$user/.ssh"
    done
    export password
    password=$(head -c 12 /dev/urandom | base64)
    echo "jonas:$password" | chroot "$root" chpasswd
    # a developer's own workstation: root by design
    echo 'mara ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/devbox" && chmod 440 "$root/etc/sudoers.d/devbox"

    cat >"$root/usr/local/sbin/devbox-health" <<'END'
#!/bin/sh
# every minute: is the disk full, is sshd there
set -eu
used=$(df -P / | awk 'NR == 2 { print $5 }' | tr -d '%')
pgrep -x sshd >/dev/null || logger -p daemon.warning -t devbox-health "sshd is gone"
[ "$used" -lt 95 ] || logger -p daemon.warning -t devbox-health "disk $used percent full"
logger -p daemon.info -t devbox-health "ok disk=$used"
END
    chmod 755 "$root/usr/local/sbin/devbox-health"
    echo '* * * * * root /usr/local/sbin/devbox-health' >"$root/etc/cron.d/devbox-health"
    cat >"$root/etc/rc.boot" <<'END'
#!/bin/sh
/usr/sbin/rsyslogd
/usr/sbin/cron
mkdir -p /run/sshd
exec /usr/sbin/sshd -D
END
    chmod 755 "$root/etc/rc.boot"

    # mara's project: it does not build before libdevmapper-dev is there, which is why she installs packages
    chroot "$root" su - mara -c 'sh -e' <<'END'
git config --global user.name Mara; git config --global user.email mara@devbox-mara; git config --global init.defaultBranch main
mkdir -p src/snapvol/tests && cd src/snapvol && git -q init . 2>/dev/null || git init -q .
cat >snapvol.c <<'C'
#include <libdevmapper.h>
#include <stdio.h>

int main(void)
{
	char version[64];
	if (!dm_get_library_version(version, sizeof version))
		return 1;
	printf("snapvol, libdevmapper %s\n", version);
	return 0;
}
C
cat >Makefile <<'C'
snapvol: snapvol.c
	$(CC) -Wall -O2 -o $@ $< -ldevmapper
test: snapvol
	python3 -m unittest discover -s tests
clean:
	rm -f snapvol
C
cat >tests/test_snapvol.py <<'C'
import shutil
import subprocess
import unittest


class Snapvol(unittest.TestCase):
    def test_version(self):
        self.assertIn("libdevmapper", subprocess.check_output(["./snapvol"], text=True))

    def test_tools(self):
        for tool in ("/sbin/lvs", "/sbin/mdadm"):
            self.assertTrue(shutil.which(tool), tool)
C
printf 'snapvol\n__pycache__/\n' >.gitignore
echo '# snapvol: snapshots of LVM and MD volumes' >README.md
git add . && git commit -q -m 'First build against libdevmapper'
END
    chroot "$root" sh -ec 'git config --system --add safe.directory "*"
        git clone -q --bare /home/mara/src/snapvol /srv/snapvol.git
        groupadd dev; usermod -aG dev mara; usermod -aG dev jonas; chgrp -R dev /srv/snapvol.git
        chmod -R g+rwX /srv/snapvol.git
        git -C /srv/snapvol.git config core.sharedRepository group
        su - mara -c "cd src/snapvol && git remote add origin /srv/snapvol.git"
        su - jonas -c "git config --global user.name Jonas; git config --global user.email jonas@devbox-mara"'

    # --- record -------------------------------------------------------------------------------------------------
    # the only way out of the private network: this socket, to the mirror's http port
    socat "UNIX-LISTEN:$lab/mirror.sock,fork" "TCP:$mirror_host:80" & bridge=$!
    unshare --net --mount "$case_dir/record.sh" inside
    # --- convert ------------------------------------------------------------------------------------------------
    python3 "$case_dir/convert.py" "$lab" "$case_dir"
    exit
fi

root=$lab/root
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
ip link set lo up
for n in 1 5 11 31 42 43 66; do ip addr add "10.20.0.$n/32" dev lo; done
# on one loopback the kernel would answer from the address that was called: name devbox-mara's own instead
ip route replace local 10.20.0.5 dev lo table local src 10.20.0.11
socat "TCP-LISTEN:3129,bind=10.20.0.1,fork,reuseaddr" "UNIX-CONNECT:$lab/mirror.sock" & gate=$!

mkdir "$lab/squid" && chown proxy: "$lab/squid"
cat >"$lab/squid.conf" <<END
http_port 10.20.0.5:3128
visible_hostname proxy01
acl lan src 10.20.0.0/24
http_access allow lan
http_access deny all
cache_peer 10.20.0.1 parent 3129 0 no-query no-digest no-netdb-exchange originserver forceddomain=$mirror_host
never_direct allow all
dns_nameservers 127.0.0.1
cache_mem 64 MB
maximum_object_size_in_memory 20 MB
forwarded_for delete
via off
pinger_enable off
pid_filename $lab/squid/squid.pid
cache_log $lab/squid/cache.log
access_log stdio:$lab/squid/access.log squid
buffered_logs off
coredump_dir $lab/squid
shutdown_lifetime 1 seconds
END
squid -N -f "$lab/squid.conf" 2>/dev/null & squid=$!

# devbox-mara: own mounts, hostname, pids; sensor.py is pid 1, read from a pipe so that it is no file in the system
unshare --mount --uts --ipc --pid --fork --kill-child sh -ec '
    hostname devbox-mara
    mount -t proc proc "$1/proc"; mount -t tmpfs -o mode=755 tmpfs "$1/run"; mkdir "$1/run/lock"
    mount -t tmpfs -o mode=755 tmpfs "$1/dev"; mkdir "$1/dev/pts" "$1/dev/shm"; chmod 1777 "$1/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$1/dev/pts"
    for n in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
        set -- "$1" $n; mknod -m 666 "$1/dev/$2" c "$3" "$4"
    done
    ln -s pts/ptmx "$1/dev/ptmx"; ln -s /proc/self/fd "$1/dev/fd"; ln -s fd/0 "$1/dev/stdin"
    ln -s fd/1 "$1/dev/stdout"; ln -s fd/2 "$1/dev/stderr"
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
        chroot "$1" python3 - 9 /etc/rc.boot
' sh "$root" <"$case_dir/sensor.py" 9>"$lab/trace.ndjson" & devbox=$!

# A typist: gives each line of its script to an interactive shell when the prompt is back.
# '~2' waits two seconds first, '?TEXT' answers TEXT to a question that ends with ': ', '%KEYS' sends keys to an editor.
cat >"$lab/type.py" <<'END'
import os, re, select, subprocess, sys, time
script, command = sys.argv[1], sys.argv[2:]
p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
seen = b""
def wait(pattern, limit=400):
    global seen
    end = time.time() + limit
    while time.time() < end:
        if re.search(pattern, seen):
            seen = b""
            return
        if select.select([p.stdout], [], [], 1)[0]:
            data = os.read(p.stdout.fileno(), 65536)
            if not data:
                return
            sys.stdout.buffer.write(data); sys.stdout.flush()
            seen = (seen + data)[-4000:]
    sys.exit(f"no prompt for {pattern}")
def send(text):
    p.stdin.write(text); p.stdin.flush()
for line in open(script).read().splitlines():
    if line.startswith("~"):
        time.sleep(float(line[1:]))
    elif line.startswith("?"):
        wait(rb": $"); time.sleep(1.5); send(line[1:].encode() + b"\n")
    elif line.startswith("%"):
        time.sleep(2); send(line[1:].encode().decode("unicode_escape").encode())
    else:
        wait(rb"[a-z]+@devbox-mara:[^\n]*\$ $"); time.sleep(0.6); send(line.encode() + b"\n")
p.stdin.close()
p.wait(60)
END
login() { # login USER ADDRESS SCRIPT
    TERM=vt100 python3 "$lab/type.py" "$lab/$1.keys" \
        ssh -F /dev/null -tt -b "$2" -i "$lab/$1.key" -o IdentitiesOnly=yes -o IdentityAgent=none \
        -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$1@10.20.0.11" >"$lab/$1.screen" 2>&1
}
guess() { # guess USER: three passwords that are wrong
    printf '#!/bin/sh\necho letmein\n' >"$lab/askpass"; chmod 755 "$lab/askpass"
    SSH_ASKPASS="$lab/askpass" SSH_ASKPASS_REQUIRE=force DISPLAY=:0 setsid ssh -F /dev/null -b 10.20.0.66 \
        -o PubkeyAuthentication=no -o NumberOfPasswordPrompts=3 -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$1@10.20.0.11" true 2>/dev/null || true
}
cat >"$lab/mara.keys" <<'END'
~4
cd src/snapvol
git status --short --branch
git fetch origin && git log --oneline -3
~5
make
~4
apt-cache policy libdevmapper-dev
~3
sudo apt-get update
~6
apt-cache show mdadm lvm2 | grep -E '^(Package|Version|Description)'
~8
sudo apt-get install -y --no-install-recommends libdevmapper-dev lvm2 thin-provisioning-tools mdadm
~5
make
make test
~3
vi README.md
%GoNeeds: libdevmapper-dev, lvm2, thin-provisioning-tools, mdadm
%\x1b:wq\r
git diff --stat
git commit -am 'Say what the build needs'
git push origin main
~6
sudo lvs
ls -l /boot
~4
exit
END
cat >"$lab/jonas.keys" <<END
~3
git clone /srv/snapvol.git
cd snapvol
less -E README.md
~5
python3 -c 'import ast,sys; print(ast.dump(ast.parse(open("tests/test_snapvol.py").read()))[:200])'
~10
sudo apt-get install -y libdevmapper-dev
?$password
~20
make
~20
ps aux | grep -c sshd
~25
git log --stat -2
~30
make
git pull
exit
END
sleep 8
guess admin
sleep 4
login jonas 10.20.0.42 & jonas=$!
sleep 12
login mara 10.20.0.31 & mara=$!
sleep 15
# another machine behind the same proxy
curl -sS -o /dev/null --interface 10.20.0.43 -x http://10.20.0.5:3128 http://deb.example.org/debian/dists/bookworm/InRelease || true
sleep 10
guess root
wait "$mara"
wait "$jonas"
sleep 20

pkill -TERM -P "$devbox" || true # the sensor, pid 1 in there: writes its last line and takes all with it
wait "$devbox" || true
kill -TERM "$squid"; wait "$squid" || true
kill "$gate" 2>/dev/null || true
