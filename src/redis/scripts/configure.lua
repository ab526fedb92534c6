-- CONFIGURE, PAUSE and RESUME, of partition 0. Arguments: whether to make the topic if it is unknown,
-- then pairs of a field of `cfg` and its value. The results are 1, or 0 for an unknown topic that was
-- not made; the version of the settings, the number of partitions, and all fields that other
-- partitions must have, too.

if ARGV[2] == '0' and not is_known then return reply({0, 0, 1, {}}) end
if not is_known then birth() end
if #ARGV > 2 then
    call('HSET', CFG, unpack(ARGV, 3))
    cfg.version = call('HINCRBY', CFG, 'version', 1)
    look_again()
end
return reply({1, cfg.version, cfg.partitions, settings()})
