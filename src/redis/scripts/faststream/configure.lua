-- CONFIGURE, PAUSE and RESUME. Arguments: name of the topic (empty: it has these keys already),
-- then pairs of a field of STATE and its value. The result is 'done'; 'full' if there are timers,
-- or 'taken' if the keys belong to another topic.

local owner = ARGV[3] ~= '' and call('HGET', STATE, 'topic')
if owner and owner ~= ARGV[3] then return reply({'taken'}) end
if ARGV[3] ~= '' then
    if call('EXISTS', TIMELINE) == 1 then return reply({'full'}) end
    call('HSET', STATE, 'topic', ARGV[3])
end
call('HSET', STATE, unpack(ARGV, 4))
return reply({'done'})
