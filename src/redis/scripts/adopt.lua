-- A partition that is not partition 0 takes over the settings of that one, unless it has newer ones.
-- Arguments: their version, the number of partitions, then pairs of a field of `cfg` and its value.
-- The result is 1, or 0 if nothing was done.

local version, partitions = tonumber(ARGV[2]), tonumber(ARGV[3])
if not is_known then birth() end
if cfg.version > version or (cfg.version == version and cfg.partitions == partitions) then
    return reply({0})
end
if #ARGV > 3 then call('HSET', CFG, unpack(ARGV, 4)) end
call('HSET', CFG, 'version', version, 'partitions', partitions)
look_again()
return reply({1})
