-- CONFIGURE, PAUSE and RESUME. Arguments: name of the topic (empty: it has these keys already),
-- then pairs of a field of STATE and its value. The result is 'done'; or, if the topic cannot have
-- these keys, 'taken' (they belong to another topic), 'types' (a key holds something else) or
-- 'bodies' (there are timers, and the hash has none of their envelopes: a claim would remove them).
-- Timers of the package stay as they are.

local LOOKED = 100

local function is_type(key, wanted)
    local kind = call('TYPE', key).ok
    return kind == 'none' or kind == wanted
end

-- Returns why the keys are not those of a topic of the package; nil if they may be.
local function misfit()
    if not is_type(TIMELINE, 'zset') or not is_type(PAYLOADS, 'hash') then return 'types' end
    local ids = call('ZRANGE', TIMELINE, 0, LOOKED - 1)
    if #ids == 0 then return nil end
    for _, envelope in ipairs(call('HMGET', PAYLOADS, unpack(ids))) do
        if envelope then return nil end
    end
    return 'bodies'
end

local owner = ARGV[3] ~= '' and call('HGET', STATE, 'topic')
if owner and owner ~= ARGV[3] then return reply({'taken'}) end
if ARGV[3] ~= '' then
    local why = misfit()
    if why then return {now, -1, -1, why} end -- reply() would read the wrong type
    call('HSET', STATE, 'topic', ARGV[3])
end
call('HSET', STATE, unpack(ARGV, 4))
return reply({'done'})
