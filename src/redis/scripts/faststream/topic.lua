-- TOPIC. The results are the numbers of timers that are not due yet and that are due, the first due
-- or false, and STATE as names and values.

local ready = call('ZCOUNT', TIMELINE, '-inf', now_score)
local first = call('ZRANGE', TIMELINE, 0, 0, 'WITHSCORES')[2]
return reply({call('ZCARD', TIMELINE) - ready, ready, first and to_ms(tonumber(first)) or false,
              call('HGETALL', STATE)})
