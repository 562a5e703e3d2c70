#!/usr/bin/env python3
"""Turn one recording (see record.sh) into the case: evidence/, alert.json, truth.json.

usage: convert.py LAB CASE_DIR          LAB holds trace.ndjson, root/ (the recorded system) and squid/access.log

Every value comes from the recording; the lines and times of truth.json are looked up here, none is typed.
"""
import json
import re
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

HOST, CASE = "devbox-mara", "package-hook-kmod"
UNSET = 4294967295
LONGEST = 1000  # command lines are cut there, and marked
# mkinitramfs starts these two more than ten thousand times to resolve paths: left out, as a sensor's noise filter would,
# and the sensor_start line says so
EXCLUDED = ("/usr/bin/readlink", "/usr/bin/realpath")
RULE = 'event == "process_start" and uid == 0 and exe != "/usr/bin/kmod" and command_line matches "^/.*/kmod$"'


def iso(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def line_of(words, row, name):
    text = " ".join(words)
    row[name] = text[:LONGEST]
    if len(text) > LONGEST:
        row[name + "_length"] = len(text)


def convert(raw, users):
    kept = [r for r in raw if r["ev"] == "exec" and r["exe"] not in EXCLUDED]
    started, parents = {r["pid"] for r in kept}, {r["ppid"] for r in kept}
    forked = {r["pid"]: r["ppid"] for r in raw if r["ev"] == "fork"}
    for pid in list(parents):  # and their parents, up to one that started a program
        while pid not in started and pid in forked:
            pid = forked[pid]
            parents.add(pid)
    shown = started | parents
    # parents that had a child before they started a program themselves
    begun, before = set(), set()
    for r in raw:
        if r["ev"] == "exec":
            begun.add(r["pid"])
        if r["ev"] in ("exec", "fork") and r["pid"] in shown and r["ppid"] not in begun:
            before.add(r["ppid"])
    rows = []
    for r in raw:
        name = {"exec": "process_start", "exit": "process_exit", "fork": "process_fork", "connect": "network_connect",
                "start": "sensor_start", "stop": "sensor_stop"}.get(r["ev"], r["ev"])
        # a fork is shown only where it explains a parent that had started no program itself (a subshell, cron's child)
        if name == "process_fork" and (r["pid"] not in before or r["pid"] not in parents):
            continue
        if name == "process_exit" and r["pid"] not in shown or name == "process_start" and r["exe"] in EXCLUDED:
            continue
        row = {"time": iso(r["t"] / 1e9), "event": name, "host": HOST}
        if name == "sensor_start":
            row["watches"] = ["process_start", "process_fork (of parents that had started no program)", "process_exit",
                              "network_connect (IPv4, IPv6, attempts)", "init_module", "finit_module", "delete_module"]
            row["excluded_exe"] = list(EXCLUDED)
        for key in ("pid", "ppid"):
            if key in r:
                row[key] = r[key]
        if "uids" in r:
            row["uid"], row["user"] = r["uids"][0], users.get(r["uids"][0])
            if r["uids"][1] != r["uids"][0]:
                row["euid"] = r["uids"][1]
            if r["auid"] != UNSET:
                row["auid"], row["login_user"] = r["auid"], users.get(r["auid"])
        if "ses" in r and r["ses"] != UNSET:
            row["session"] = r["ses"]
        if "exe" in r:
            row["exe"] = r["exe"]
            line_of(r["argv"], row, "command_line")
        if r.get("cwd"):
            row["cwd"] = r["cwd"]
        if r.get("parent_exe"):
            row["parent_exe"] = r["parent_exe"]
            line_of(r["parent_argv"], row, "parent_command_line")
        for key in ("ip", "port", "code", "signal"):
            if key in r:
                row[{"ip": "dest_ip", "port": "dest_port", "code": "exit_code"}.get(key, key)] = r[key]
        rows.append(row)
    return rows


def rule(row):
    return (row["event"] == "process_start" and row["uid"] == 0 and row["exe"] != "/usr/bin/kmod"
            and re.search("^/.*/kmod$", row["command_line"]) is not None)


class Truth:
    def __init__(self, evidence, rows, year):
        self.rows, self.year, self.events = rows, year, []
        self.lines = {p.name: p.read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n") for p in evidence.iterdir()}

    def process(self, *parts, after=0, last=False, event="process_start", **equal):
        """Line of the first (or last) process record that contains the parts and has the values."""
        hits = [n for n, r in enumerate(self.rows, 1)
                if n > after and r["event"] == event and all(p in r.get("command_line", "") for p in parts)
                and all(r.get(k) == v for k, v in equal.items())]
        if not hits:
            raise LookupError(f"no {event} with {parts} {equal}")
        return "endpoint_process.ndjson", hits[-1 if last else 0]

    def text(self, name, pattern, last=False):
        hits = [n for n, line in enumerate(self.lines[name], 1) if re.search(pattern, line)]
        if not hits:
            raise LookupError(f"{name}: no {pattern}")
        return name, hits[-1 if last else 0]

    def ref(self, name, line, must_contain):
        text = self.lines[name][line - 1]
        if name.endswith(".ndjson"):
            raw = json.loads(text)["time"]
            kind, field, when = "iso", "time", raw
        elif name == "proxy_access.log":
            raw = text.split()[0]
            kind, field, when = "epoch_s", "field 1", iso(float(raw))
        elif name == "dpkg.log":
            raw = text[:19]
            kind, field, when = "local time of the host, UTC", "start of the line", iso_of(raw, "%Y-%m-%d %H:%M:%S")
        elif name == "apt_history.log":
            raw = text.split(": ", 1)[1]
            kind, field, when = "local time of the host, UTC", "Start-Date / End-Date", iso_of(raw, "%Y-%m-%d  %H:%M:%S")
        else:
            raw = text[:15]
            kind, field, when = "syslog, no year, UTC", "start of the line", iso_of(f"{self.year} {raw}", "%Y %b %d %H:%M:%S")
        for part in must_contain:
            assert part in text, (name, line, part)
        return when, {"file": f"evidence/{name}", "line": line, "time_field": field, "raw_time": raw,
                      "time_format": kind, "must_contain": must_contain}

    def add(self, importance, description, *where, technique=None):
        """where: (file, line) and the strings the line holds. The first one gives the event's time."""
        refs = [self.ref(name, line, list(parts)) for (name, line), *parts in where]
        times = [datetime.fromisoformat(w.replace("Z", "+00:00")).timestamp() for w, _ in refs]
        # logs with whole seconds show the second the event lies in
        spread = max(abs(t - times[0]) for t in times)
        coarse = any(not r["file"].endswith(".ndjson") for _, r in refs)
        self.events.append((times[0], {
            "id": "", "time_utc": refs[0][0], "tolerance_seconds": round(spread + (1.0 if coarse else 0.001), 3),
            "description": description, "importance": importance, "basis": "record", "evidence": [r for _, r in refs]}))


def iso_of(text, form):
    return iso(datetime.strptime(text, form).replace(tzinfo=timezone.utc).timestamp())


def main():
    lab, case = Path(sys.argv[1]), Path(sys.argv[2])
    root, evidence = lab / "root", case / "evidence"
    users = {int(f[2]): f[0] for f in (line.split(":") for line in (root / "etc/passwd").read_text().splitlines())}
    raw = [json.loads(line) for line in (lab / "trace.ndjson").open()]
    rows = convert(raw, users)

    shutil.rmtree(evidence, ignore_errors=True)
    evidence.mkdir(parents=True)
    with (evidence / "endpoint_process.ndjson").open("w") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    for source, name in (("var/log/auth.log", "auth.log"), ("var/log/syslog", "syslog.log"), ("var/log/dpkg.log", "dpkg.log"),
                         ("var/log/apt/history.log", "apt_history.log"), ("var/log/apt/term.log", "apt_term.log"),
                         ("../squid/access.log", "proxy_access.log")):
        shutil.copyfile(root / source, evidence / name)
    about = {
        "endpoint_process.ndjson": "process sensor on devbox-mara, one event a line: start (at exec), exit, network connects, kernel "
                                   "module system calls; the first and last line say what it watched and from when to when",
        "auth.log": "sshd, sudo, cron and PAM on devbox-mara; classic syslog time, no year, UTC",
        "syslog.log": "rsyslog on devbox-mara: cron, the health job; classic syslog time, no year, UTC",
        "dpkg.log": "dpkg on devbox-mara, local time (UTC)",
        "apt_history.log": "apt's history: command line, who asked, packages, start and end",
        "apt_term.log": "what the package scripts printed",
        "proxy_access.log": "squid on proxy01 (native format, epoch seconds at the END of each request): not in the hands of root "
                            "on devbox-mara",
    }

    hits = [n for n, r in enumerate(rows, 1) if rule(r)]
    line = hits[0]
    hit = rows[line - 1]
    alert = {
        "id": f"edr-kmod-{hit['time'][:10].replace('-', '')}-0001",
        "source": "edr",
        "rule": {"id": "edr-linux-kmod-001", "title": "Kernel module load by non-system process", "level": "high", "condition": RULE},
        "created_at": iso(datetime.fromisoformat(hit["time"].replace("Z", "+00:00")).timestamp() // 1 + 1)[:19] + "Z",
        "event_time": hit["time"],
        "host": HOST,
        "user": hit["user"],
        "login_user": hit.get("login_user"),
        "process": {k: hit[k] for k in ("pid", "ppid", "exe", "command_line", "cwd", "parent_exe", "parent_command_line")},
        "description": f"{hit['exe']} (uid 0) started with a path that ends in \"kmod\" in its command line: {hit['command_line']}",
        "event_ref": {"file": "evidence/endpoint_process.ndjson", "line": line},
        "data_sources": [f"evidence/{name}" for name in about],
    }
    (case / "alert.json").write_text(json.dumps(alert, indent=1, ensure_ascii=False) + "\n")

    t = Truth(evidence, rows, hit["time"][:4])
    build(t, line)
    key_events = []
    for i, (_, event) in enumerate(sorted(t.events, key=lambda e: e[0]), 1):
        key_events.append({**event, "id": f"e{i}"})
    modprobe = [r for r in rows if r["event"] == "process_start" and r["exe"] == "/usr/bin/kmod"
                and r["command_line"].split()[0].endswith("modprobe")]
    show = [r for r in modprobe if "--show-depends" in r["command_line"]]
    loads = [r["command_line"] for r in modprobe if r not in show]
    assert loads == ["modprobe md"], loads
    modules = [r for r in rows if r["event"] in ("init_module", "finit_module", "delete_module")]
    assert not modules, modules
    truth = {
        "schema": "case-truth/1", "case": CASE, "split": "demo", "verdict": "false_positive", "verdict_basis": "recorded",
        "verdict_rationale": "mara installed packages with sudo apt-get on her own workstation; dpkg's initramfs-tools trigger ran "
                             "update-initramfs, mkinitramfs ran the hook scripts, and the rule took a hook script with kmod in its "
                             f"name for a module load. {len(show)} of {len(show) + 1} modprobe runs are --show-depends queries; the one "
                             "other, 'modprobe md' of mdadm's package script, failed. The sensor watched the module system calls "
                             "and saw none.",
        "acceptable_verdicts": ["false_positive", "benign"],
        "techniques": [{"id": "T1547.006", "basis": "inferred", "note": "what the alert is about; it did not happen"}],
        "time_range": {"from": key_events[0]["time_utc"], "to": key_events[-1]["time_utc"]},
        "gaps": [
            {"from": None, "to": rows[0]["time"], "basis": "record",
             "why": "the sensor starts with the recording: nothing is known of the host before, and no kernel log or list of loaded "
                    "modules is there to confirm the sensor from inside the kernel"},
            {"from": None, "to": None, "basis": "record",
             "why": "no change ticket, chat or asset record says that the install was planned or what devbox-mara is for"},
            {"from": None, "to": None, "basis": "record",
             "why": "no record of file contents: that hooks and packages are Debian's own rests on package names, versions and the "
                    "proxy's download log, not on hashes"},
        ],
        "traps": [
            f"'every modprobe was a --show-depends query' is not quite true: {len(show)} were, but 'modprobe md' (mdadm's package "
            "script) really asks for a load. It left with a failure and no module system call followed",
            "/usr/bin/kmod is the program behind modprobe, depmod and modinfo: exe alone does not say what was done",
            "the hook script shows up three times (sh -n to check it, 'prereqs' to sort the hooks, then the run): one activity, and "
            "the alert is the third",
            "many modprobe queries come before the hook of the alert: mkinitramfs asks for itself before it runs the hooks",
            "readlink and realpath are missing by the sensor's filter, so pids of root's activity have holes: no tampering",
            "wrong passwords for admin and root from 10.20.0.66 in the same minutes: never a login, unrelated",
            "jonas' sudo apt-get install was refused (not in sudoers): it installed nothing; the install is mara's",
            "devbox-health runs each minute as root from cron: no link to the install",
            "proxy times are the end of a request, sensor times the start of a process; syslog has whole seconds and no year",
            "a new initrd is written to /boot (update-initramfs): expected, no boot persistence",
        ],
        "confidence_note": "everything was done by the recording script; lines and times looked up by convert.py.",
        "evidence_files": [{"file": f"evidence/{n}", "lines": len(t.lines[n]), "about": a} for n, a in about.items()],
        "key_events": key_events,
        "entities": [
            {"type": kind, "value": value, "role": role, "basis": "record", "in_evidence": True} for kind, value, role in (
                ("host", HOST, "developer workstation (10.20.0.11)"), ("user", "mara", "developer, uid %d, sudo to root" %
                                                                       next(u for u, n in users.items() if n == "mara")),
                ("user", "jonas", "second developer, no sudo, unrelated"), ("ip", "10.20.0.31", "mara logs in from here"),
                ("ip", "10.20.0.66", "password guesser, unrelated"), ("ip", "10.20.0.5", "proxy01"),
                ("process", hit["command_line"].split()[1], "the hook script of the alert"),
                ("process", "/usr/sbin/update-initramfs", "run by dpkg's trigger"), ("package", "mdadm", "installed"),
                ("package", "lvm2", "installed"), ("package", "thin-provisioning-tools", "installed"))],
    }
    for entity in truth["entities"]:
        assert any(entity["value"] in text for lines in t.lines.values() for text in lines), entity
    (case / "truth.json").write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n")

    # nothing of the recording machine may be left
    mirror = [m for m in re.findall(r"forceddomain=(\S+)", (lab / "squid.conf").read_text())]
    for path in [*evidence.iterdir(), case / "alert.json", case / "truth.json"]:
        text = path.read_text(errors="replace")
        for word in [str(lab), str(case), *mirror]:
            assert word not in text, f"{path.name} holds {word}"
    total = sum(p.stat().st_size for p in evidence.iterdir())
    for name, lines in t.lines.items():
        print(f"{len(lines):7} {(evidence / name).stat().st_size:9} {name}")
    print(f"{total} bytes; {len(show)} modprobe --show-depends; {len(hits)} rule hits; alert is line {line}")
    for e in key_events:
        print(e["id"], e["time_utc"], e["importance"], e["description"])


def build(t, alert_line):
    """The key events: what the recording script made happen, found again in the records."""
    login = t.text("auth.log", r"sshd\[\d+\]: Accepted publickey for mara ")
    t.add("must", "mara logs in to devbox-mara over ssh from 10.20.0.31 with her key", (login, "Accepted publickey for mara"),
          (t.text("auth.log", r"sshd.*session opened for user mara"), "session opened"),
          (t.process("-bash", login_user="mara"), "-bash"))
    t.add("should", "unrelated: wrong passwords for the unknown user admin from 10.20.0.66",
          (t.text("auth.log", "Failed password for invalid user admin"), "10.20.0.66"))
    t.add("should", "unrelated: wrong passwords for root from 10.20.0.66", (t.text("auth.log", "Failed password for root"), "10.20.0.66"))
    t.add("should", "unrelated: jonas logs in over ssh from 10.20.0.42",
          (t.text("auth.log", "Accepted publickey for jonas"), "10.20.0.42"))
    t.add("should", "unrelated: jonas' sudo apt-get install is refused, he is not in sudoers",
          (t.text("auth.log", r"jonas : user NOT in sudoers"), "NOT in sudoers"))
    first = t.process("make", login_user="mara", exe="/usr/bin/make")
    failed = t.process(event="process_exit", pid=t.rows[first[1] - 1]["pid"], after=first[1])
    t.add("should", "mara's make fails with exit code 2 before the packages are there", (first, "make"), (failed, '"exit_code":2'))
    install = t.process("sudo apt-get install", login_user="mara", exe="/usr/bin/sudo")
    apt = t.process("apt-get install", login_user="mara", exe="/usr/bin/apt-get")
    t.add("must", "mara runs sudo apt-get install of libdevmapper-dev, lvm2, thin-provisioning-tools and mdadm: root's activity begins",
          (install, "mdadm"), (apt, "mdadm"), (t.text("auth.log", r"mara : .*COMMAND=/usr/bin/apt-get install"), "mdadm"),
          (t.text("apt_history.log", "^Start-Date"), "Start-Date"))
    t.add("should", "the packages are fetched through proxy01 from the Debian mirror: lvm2",
          (t.text("proxy_access.log", r"10\.20\.0\.11 .*/lvm2_[^ ]*\.deb"), "lvm2_"))
    t.add("should", "the packages are fetched through proxy01 from the Debian mirror: mdadm",
          (t.text("proxy_access.log", r"10\.20\.0\.11 .*/mdadm_[^ ]*\.deb"), "mdadm_"))
    t.add("must", "dpkg unpacks the packages: install mdadm",
          (t.text("dpkg.log", r" install mdadm:"), "install mdadm"))
    trigger = t.text("dpkg.log", r" trigproc initramfs-tools:")
    postinst = t.process("initramfs-tools.postinst triggered update-initramfs", after=apt[1])
    update = t.process("/bin/sh /usr/sbin/update-initramfs -u", after=postinst[1])
    t.add("must", "dpkg's trigger of initramfs-tools runs update-initramfs -u",
          (update, "update-initramfs"), (postinst, "triggered"), (trigger, "trigproc initramfs-tools"))
    make = t.process("mkinitramfs -o", after=update[1])
    t.add("should", "update-initramfs runs mkinitramfs for the installed kernel", (make, "mkinitramfs"))
    t.add("must", "ALERT: mkinitramfs runs the hook script of kmod; the rule matched 'kmod' in its path",
          (("endpoint_process.ndjson", alert_line), "hooks/kmod"))
    load = t.process("modprobe md", exe="/usr/bin/kmod", after=apt[1])
    gone = t.process(event="process_exit", pid=t.rows[load[1] - 1]["pid"], after=load[1])
    t.add("should", f"the one modprobe that is no query: 'modprobe md', from {t.rows[load[1] - 1]['parent_command_line']}; it fails",
          (load, "modprobe md"), (gone, '"exit_code":1'))
    query = t.process("modprobe", "--show-depends", exe="/usr/bin/kmod", after=make[1])
    t.add("must", "first modprobe --show-depends: asks for module dependencies, loads nothing", (query, "--show-depends"))
    for module in ("thermal", "dm-cache", "raid0"):
        asked = t.process("modprobe", "--show-depends", f" {module}", exe="/usr/bin/kmod", after=make[1])
        t.add("should", f"modprobe --show-depends asks for {module}, from {t.rows[asked[1] - 1]['parent_command_line']}",
              (asked, "--show-depends", module))
    for hook in ("lvm2", "mdadm", "zz-busybox"):
        t.add("should", f"another hook script of the same run: {hook}",
              (t.process("/bin/sh ", f"hooks/{hook}", last=True, after=make[1]), f"hooks/{hook}"))
    t.add("must", "last modprobe --show-depends query of the session",
          (t.process("modprobe", "--show-depends", exe="/usr/bin/kmod", last=True), "--show-depends"))
    t.add("must", "the install ends: apt-get leaves with exit code 0",
          (t.process(event="process_exit", pid=t.rows[apt[1] - 1]["pid"], after=apt[1]), '"exit_code":0'))
    t.add("should", "mara's build works now: make test", (t.process("make test", login_user="mara", exe="/usr/bin/make"), "test"))
    t.add("should", "mara logs out", (t.text("auth.log", "sshd.*session closed for user mara"), "session closed"))


main()
