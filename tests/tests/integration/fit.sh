#!/bin/sh
# Starts what deploy/ describes, with exactly its files: three servers with TLS on hosts of their own, and each unit on
# one more. Runs in a sandbox: unshare --net --mount --pid --fork --kill-child --mount-proc sh fit.sh ...
#
#   fit.sh DEPLOY FOLDER NATS-SERVER PROGRAMS EVIDENCE ALERT
set -eu
deploy=$1 folder=$2 server=$3 programs=$4 evidence=$5 alert=$6
etc=$folder/etc
umask 022

# docs/operations.md: where the files go.
mkdir -p "$etc/nats" "$etc/tls" "$etc/credentials" "$folder/state/nats-1" "$folder/state/nats-2" "$folder/state/nats-3"
cp "$deploy"/nats/*.conf "$etc/nats"
cp "$deploy"/config/* "$etc"
"$deploy/nats/make-passwords" "$etc/nats"
"$deploy/nats/make-certificates" "$etc/nats/tls" nats-1.example.org nats-2.example.org nats-3.example.org
cp "$etc"/nats/credentials/* "$etc/credentials"
cp "$etc/nats/tls/ca.pem" "$etc/tls/ca.pem"
cp "$etc/nats/mac.key" "$etc/mac.key"
mkdir -p /etc/casebook /var/lib/casebook-nats /var/log/casebook-evidence /run/netns
mount --bind "$etc" /etc/casebook
mount --bind "$evidence" /var/log/casebook-evidence
mount -t tmpfs none /var/lib/casebook-nats
mount -t tmpfs none /var/lib
mount -t tmpfs none /usr/local/bin
mount -t tmpfs none /run/netns
mkdir -p /var/lib/casebook-nats /var/lib/casebook/endpoint
for program in "$programs"/casebook "$programs"/casebook-*; do
  [ -x "$program" ] && ln -s "$program" /usr/local/bin/ || true
done
cat /etc/hosts > "$folder/hosts"
ip link set lo up
ip link add lan type bridge
ip addr add 10.77.0.254/24 dev lan
ip link set lan up
for n in 1 2 3; do
  echo "10.77.0.$n nats-$n.example.org" >> "$folder/hosts"
  ip netns add "nats-$n"
  ip link add "v$n" type veth peer name eth0 netns "nats-$n"
  ip link set "v$n" master lan up
  ip -n "nats-$n" addr add "10.77.0.$n/24" dev eth0
  ip -n "nats-$n" link set eth0 up
  ip -n "nats-$n" link set lo up
done
mount --bind "$folder/hosts" /etc/hosts

for n in 1 2 3; do
  # The only change that the file asks for.
  sed "s/^server_name: casebook-1$/server_name: casebook-$n/" "$etc/nats/cluster.conf" > "$etc/nats/cluster-$n.conf"
  ip netns exec "nats-$n" unshare --mount sh -c \
    "mount --bind '$folder/state/nats-$n' /var/lib/casebook-nats && exec '$server' -c /etc/casebook/nats/cluster-$n.conf" \
    > "$folder/nats-$n.log" 2>&1 &
done

# What systemd starts, without its sandbox.
start() {
  unit=$1 name=${2:-}
  line=$(sed -n 's/^ExecStart=//p' "$deploy/systemd/$unit.service" | sed "s/%i/$name/g")
  variable=$(sed -n 's/^Environment=//p' "$deploy/systemd/$unit.service")
  # shellcheck disable=SC2086
  env "$variable" $line > "$folder/$unit$name.log" 2>&1 < /dev/null &
}
# The API first makes its key in its folder.
for unit in casebook-hub casebook-director casebook-critic casebook-expert casebook-api; do start "$unit"; done
start casebook-expert@ endpoint

for program in hub director critic expert api "expert --config /etc/casebook/expert-endpoint.toml"; do
  # shellcheck disable=SC2086
  set -- $program
  ready="/usr/local/bin/casebook-$1 --config ${3:-/etc/casebook/$1.toml} --healthy"
  tries=0
  until $ready > "$folder/healthy" 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 150 ]; then
      echo "$program is not healthy: $(cat "$folder/healthy")"
      tail -n 5 "$folder"/*.log
      exit 1
    fi
    sleep 0.4
  done
  echo "healthy: $program"
done

nats=$(sed -n 's/^nats = "\(.*\)"$/\1/p' "$etc/hub.toml")
to="--nats $nats --ca /etc/casebook/tls/ca.pem --credentials /etc/casebook/credentials"
# shellcheck disable=SC2086
/usr/local/bin/casebook alert "$alert" $to/publisher
tries=0
# shellcheck disable=SC2086
until /usr/local/bin/casebook list $to/reader --data "$folder/lists" --mac-key-file /etc/casebook/mac.key | tee "$folder/list" | grep -Eqi 'positive|inconclusive'; do
  tries=$((tries + 1))
  if [ $tries -gt 150 ]; then
    cat "$folder/list"
    tail -n 5 "$folder"/*.log
    exit 1
  fi
  sleep 0.4
done
cat "$folder/list"
! grep -h Violation "$folder"/*.log
