"""Hooks of Schemathesis: a claim that would wait is sent without its wait."""
import re

import schemathesis

DURATION = re.compile(r"[0-9]+|([0-9]+(ms|s|m|h|d|w))+|P[0-9DTHMSW]+")


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    wait = body.get("wait") if isinstance(body, dict) else None
    is_text = isinstance(wait, str) and DURATION.fullmatch(wait)
    if is_text or type(wait) in (int, float) and wait > 0:
        body["wait"] = "0s"
