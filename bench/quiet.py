"""Finds out if a machine is quiet: the share of its CPUs that others take.

It is for Linux: the ticks of /proc/stat, less those of this process and its
children. Ticks that a virtual machine's host took (steal) count as others'.
"""

import os
import pathlib
import time

WINDOW_S = 30
MOST_SHARE = 0.05  # share of all CPUs, over the window


def machine_ticks():
    """Returns (taken, all), the ticks of all CPUs since the machine started."""
    line = pathlib.Path("/proc/stat").read_text().splitlines()[0]
    # The numbers are user, nice, system, idle, iowait, irq, softirq and steal;
    # user includes guests.
    ticks = [int(word) for word in line.split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def own_ticks():
    """The ticks of this process and of children that it has waited for."""
    return sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")


class Others:
    """The share of the CPUs that others took since this object was made."""

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
    Returns their share in the last window, and if it was low enough."""
    for waited in range(WINDOW_S, max(limit_s, WINDOW_S) + 1, WINDOW_S):
        window = others()
        sleep(WINDOW_S)
        share = window.share()
        if share < MOST_SHARE:
            return share, True
    return share, False
