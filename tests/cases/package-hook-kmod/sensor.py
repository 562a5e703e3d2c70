#!/usr/bin/env python3
"""The endpoint sensor of the recording: runs one boot script and follows every process under it with ptrace.

usage: sensor.py OUT_FD PROGRAM [ARG...]        (x86_64 Linux, as root; normally pid 1 of its own pid namespace)

Why not strace: at each exec this asks the kernel for what an EDR agent reports (exe, the command line as the kernel
made it, so '/bin/sh /path/hook' for a script, cwd, uids, login uid) instead of guessing it back from system calls.
Why not auditd or eBPF: both act on the whole machine, and the recording machine is not ours alone.

One JSON object a line on OUT_FD: exec, fork (processes only, no threads), exit, connect (AF_INET and AF_INET6, at
entry: an attempt), and init_module, finit_module, delete_module (at entry, so a refused call is seen too).
"""
import ctypes
import json
import os
import signal
import socket
import struct
import sys
import time

SEIZE, CONT, LISTEN, GETEVENTMSG, GET_SYSCALL_INFO = 0x4206, 7, 0x4208, 0x4201, 0x420E
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000  # fork, vfork, clone, exec, seccomp; kill all with the tracer
EV_FORKS, EV_EXEC, EV_SECCOMP, EV_STOP = (1, 2, 3), 4, 7, 128
WALL = 0x40000000
SYSCALLS = {42: "connect", 175: "init_module", 176: "delete_module", 313: "finit_module"}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, addr=0, data=0):
    return libc.ptrace(request, pid, ctypes.c_void_p(addr), ctypes.c_void_p(data))


def install_filter():
    """seccomp: hand the few system calls of SYSCALLS to the tracer, let all others run at full speed."""
    jump, code = len(SYSCALLS), [(0x20, 0, 0, 4), (0x15, 1, 0, 0xC000003E), (0x06, 0, 0, 0x7FFF0000), (0x20, 0, 0, 0)]
    for i, number in enumerate(SYSCALLS):
        code.append((0x15, jump - i, 0, number))
    code += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x7FF00000)]
    raw = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(raw)))
    if libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
        os._exit(126)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None


def status(pid):
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").decode("utf-8", "replace").splitlines()
                if ":\t" in line)


def argv(pid):
    parts = read(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")
    return parts[:-1] if parts and parts[-1] == "" else parts


def describe(pid):
    s = status(pid)
    ppid = int(s.get("PPid", 0))
    row = {"pid": pid, "ppid": ppid, "uids": [int(x) for x in s.get("Uid", "").split()], "exe": link(f"/proc/{pid}/exe"),
           "argv": argv(pid), "cwd": link(f"/proc/{pid}/cwd"), "auid": int(read(f"/proc/{pid}/loginuid") or 0),
           "ses": int(read(f"/proc/{pid}/sessionid") or 0)}
    if ppid > 1:  # pid 1 is this sensor: not part of the watched machine
        row["parent_exe"], row["parent_argv"] = link(f"/proc/{ppid}/exe"), argv(ppid)
    return row


def syscall(pid):
    info = ctypes.create_string_buffer(88)
    if ptrace(GET_SYSCALL_INFO, pid, 88, ctypes.addressof(info)) <= 0:
        return None
    number, *args = struct.unpack_from("QQQQQQQ", info.raw, 24)
    name = SYSCALLS.get(number)
    if name != "connect":
        return name, {}
    try:
        with open(f"/proc/{pid}/mem", "rb", 0) as mem:
            mem.seek(args[1])
            addr = mem.read(min(args[2], 28))
    except OSError:
        return None
    family = struct.unpack_from("H", addr)[0] if len(addr) >= 2 else 0
    if family == socket.AF_INET and len(addr) >= 8:
        return name, {"ip": socket.inet_ntop(family, addr[4:8]), "port": struct.unpack_from(">H", addr, 2)[0]}
    if family == socket.AF_INET6 and len(addr) >= 24:
        return name, {"ip": socket.inet_ntop(family, addr[8:24]), "port": struct.unpack_from(">H", addr, 2)[0]}
    return None


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


def main():
    out = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    os.set_inheritable(out.fileno(), False)

    def emit(event, **row):
        out.write(json.dumps({"t": time.time_ns(), "ev": event, **row}, ensure_ascii=False, separators=(",", ":")) + "\n")

    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(ready, 1)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        install_filter()
        os.execv(sys.argv[2], sys.argv[2:])
    if ptrace(SEIZE, child, 0, OPTIONS):
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")
    signal.signal(signal.SIGTERM, stop)
    emit("start", uname=os.uname().release)
    os.write(go, b"x")
    processes, known, early = {child}, {child}, set()
    message = ctypes.c_ulong()
    try:
        while True:
            try:
                pid, st = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFEXITED(st) or os.WIFSIGNALED(st):
                known.discard(pid)
                if pid in processes:
                    processes.discard(pid)
                    emit("exit", pid=pid, **({"code": os.WEXITSTATUS(st)} if os.WIFEXITED(st) else {"signal": os.WTERMSIG(st)}))
                continue
            sig, event = st >> 8 & 0xFF, st >> 16
            if pid not in known:  # a child that stopped before its parent's fork was reported: it waits for that
                early.add(pid)
                continue
            resume, deliver = CONT, 0
            if event in EV_FORKS:
                ptrace(GETEVENTMSG, pid, 0, ctypes.addressof(message))
                new = message.value
                known.add(new)
                s = status(new)
                if s.get("Tgid", "").strip() == str(new):
                    processes.add(new)
                    emit("fork", pid=new, ppid=int(s["PPid"]), uids=[int(x) for x in s["Uid"].split()],
                         auid=int(read(f"/proc/{new}/loginuid") or 0), exe=link(f"/proc/{new}/exe"), argv=argv(new))
                if new in early:
                    early.discard(new)
                    ptrace(CONT, new)
            elif event == EV_EXEC:
                emit("exec", **describe(pid))
            elif event == EV_SECCOMP:
                call = syscall(pid)
                if call and call[0]:
                    emit(call[0], **call[1], **describe(int(status(pid).get("Tgid", pid))))
            elif event == EV_STOP:
                if sig in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
                    resume = LISTEN
            else:
                deliver = sig
            ptrace(resume, pid, 0, deliver)
    except Stop:
        pass
    emit("stop")


main()
