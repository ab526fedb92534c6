-- How many timers a claim would find.

return reply({cfg.paused and 0 or call('ZCOUNT', TIMELINE, '-inf', now_score)})
