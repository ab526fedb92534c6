-- How many timers a claim would find now, for a claim over several topics.

if not is_known or cfg.paused then return reply({0}) end
if not is_swept then return again() end
return reply({call('ZCOUNT', PEND, '-inf', now_text)})
