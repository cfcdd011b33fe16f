"""Whether a machine is quiet: what other processes take of its CPUs.

Linux, from /proc/stat, less what this process and its children took. What a
virtual machine's host took of its CPUs (steal) counts as others'.
"""

import os
import pathlib
import time

WINDOW_S = 30
MOST_SHARE = 0.05  # of all CPUs, over the window


def machine_ticks():
    """(taken, all) of every CPU since the machine started."""
    line = pathlib.Path("/proc/stat").read_text().splitlines()[0]
    # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    ticks = [int(word) for word in line.split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def own_ticks():
    """What this process took, and the children that it has waited for."""
    return sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")


class Others:
    """The others' share since it was made."""

    def __init__(self, machine=machine_ticks, own=own_ticks):
        self.machine, self.own = machine, own
        self.taken, self.all = machine()
        self.ours = own()

    def share(self):
        taken, every = self.machine()
        others = taken - self.taken - (self.own() - self.ours)
        return max(0, others) / max(1, every - self.all)


def wait(limit_s, others=Others, sleep=time.sleep):
    """Waits until others took under MOST_SHARE for WINDOW_S, `limit_s` at most.
    Returns their share of the last window, and whether that was enough."""
    for waited in range(WINDOW_S, max(limit_s, WINDOW_S) + 1, WINDOW_S):
        window = others()
        sleep(WINDOW_S)
        share = window.share()
        if share < MOST_SHARE:
            return share, True
    return share, False
