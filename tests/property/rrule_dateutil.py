#!/usr/bin/env python3
"""Says what python3-dateutil makes of recurrence rules: prop_rrule's second opinion.

Each line of the input is a start, the last time of interest and a rule, with spaces between;
each line of the output the times up to that one. Exits with 77 if there is no dateutil.
"""
import sys

try:
    from dateutil import rrule
    from datetime import datetime
except ImportError:
    sys.exit(77)

FORM = "%Y%m%dT%H%M%S"

for line in sys.stdin:
    start, last, text = line.split()
    last = datetime.strptime(last, FORM)
    times = []
    for time in rrule.rrulestr(text, dtstart=datetime.strptime(start, FORM)):
        if time > last:
            break
        times.append(time.strftime(FORM))
    print(" ".join(times))
