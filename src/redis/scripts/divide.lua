-- Sets the number of partitions, at partition 0. Arguments: the number (empty: leave it, and open the
-- partition again), then pairs of a field of `cfg` and its value. The results are those of
-- configure; the first is 0 if the partition is not closed any more, and nothing was done.

local is_closed = cfg.closed ~= 0 and cfg.closed > read_time()
if is_known and not is_closed then return reply({0, cfg.version, cfg.partitions, {}}) end
if not is_known then birth() end
call('HDEL', CFG, 'closed')
if ARGV[2] ~= '' then
    call('HSET', CFG, 'partitions', ARGV[2], unpack(ARGV, 3))
    cfg.partitions = tonumber(ARGV[2])
    cfg.version = call('HINCRBY', CFG, 'version', 1)
    look_again()
end
return reply({1, cfg.version, cfg.partitions, settings()})
