-- PURGE. Arguments: which (s: not due yet, r: due), the time that divides them in ms (empty: now),
-- the most to purge. The result is their number and that time.

local time = tonumber(ARGV[4]) or now
local score, ids = ARGV[4] == '' and now_score or print_score(time), nil
if ARGV[3] == 'r' then
    ids = call('ZRANGEBYSCORE', TIMELINE, '-inf', score, 'LIMIT', 0, ARGV[5])
else
    ids = call('ZRANGEBYSCORE', TIMELINE, '(' .. score, '+inf', 'LIMIT', 0, ARGV[5])
end
for _, id in ipairs(ids) do
    remove(id)
end
return reply({#ids, time})
