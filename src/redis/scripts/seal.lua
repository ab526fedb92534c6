-- Closes a partition before the number of partitions is changed. Arguments: for how many ms, of
-- partition 0; 0: another one is sealed until it adopts settings again; the new number. The results
-- are 0 if the partition has a record, 1 if it is closed, 2 if it has the number already; and the
-- old number.

local FULL, CLOSED, EQUAL = 0, 1, 2

local function seal()
    if ARGV[2] ~= '0' and cfg.partitions == tonumber(ARGV[3]) then return EQUAL end
    if not is_known then return CLOSED end
    if call('HLEN', REC) > 1 then return FULL end
    if ARGV[2] == '0' then
        call('HSET', CFG, 'partitions', '0')
    else
        call('HSET', CFG, 'closed', print_number(read_time() + tonumber(ARGV[2])))
    end
    return CLOSED
end

if not is_swept then return again() end
return reply({seal(), cfg.partitions})
