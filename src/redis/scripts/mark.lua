-- Says that the timers of a topic are in another layout (its name), or in this one again (empty).
-- Stands without the prelude, which refuses topics of another layout. The result is 'done', or
-- 'full' if there are timers (only the entry that means nothing may be there) or partitions.

local REC, CFG = KEYS[3], KEYS[10]
local now = tonumber(string.match(ARGV[1], '^%d*'))
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local result = 'done'
if ARGV[2] == '' then
    redis.call('HDEL', CFG, 'layout')
elseif redis.call('HLEN', REC) > 1 or (redis.call('HGET', CFG, 'partitions') or '1') ~= '1' then
    result = 'full'
else
    redis.call('HSET', CFG, 'layout', ARGV[2])
end
return {now, -1, -1, result}
