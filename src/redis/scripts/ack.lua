-- ACK. Items of two: member of a token; its secret, then the result of the work. Each result of the
-- script is 1, or 0 for a token that is not of a live lease; 'all' alone stands for 1 of each. All
-- leases are ended at once; without retention all timers are deleted at once, unless one of them
-- is an occurrence, which another one may follow.

local ARGS = 2
local DUE_AT = 20 -- in a token

-- Returns whether a lease has not ended; if all was swept, no other lease has a token.
local function is_running(member) -- rare
    local score = tonumber(call('ZSCORE', LEASE, member))
    return score and score > now
end

-- Sets the results of tokens that came before in the call to 0; only the first one ends the lease.
local function forget_doubles(results, members, entries) -- rare
    local seen = {}
    for i, member in ipairs(members) do
        if seen[member] and results[i + 3] == 1 then
            results[i + 3] = 0
            count_due(struct.unpack('>i7', entries[i], DUE_AT), 1)
        end
        seen[member] = seen[member] or results[i + 3] == 1
    end
end

-- Ends a timer that is not leased any more.
local function complete(member, result) -- rare
    local id, a = string.sub(member, 9), nil
    if cfg.retention ~= 0 then
        a = read_att(id)
        a.result = result
    end
    finish(id, string.sub(member, 1, 8), DONE, '', a)
end

local sub, unpack_numbers, floor = string.sub, struct.unpack, math.floor
local results, members, acked, ids, n = {0, 0, 0}, {}, {}, {}, 0
local is_plain = (stored[RETENTION_MS] or '0') == '0'
for at = 2, #ARGV, ARGS do
    members[at / 2] = ARGV[at]
end
local entries = call('HMGET', TOK, unpack(members))
for i = 1, #members do
    local member, entry, secret = members[i], entries[i], ARGV[ARGS * i + 1]
    if #secret > SECRET_BYTES then secret = sub(secret, 1, SECRET_BYTES) end
    local is_live = entry and sub(entry, 1, SECRET_BYTES) == secret
    if is_live and not is_swept then is_live = is_running(member) end
    if is_live then
        n = n + 1
        acked[n], ids[n] = member, sub(member, 9)
        local hour = floor(unpack_numbers('>i7', entry, DUE_AT) / HOUR_MS)
        hours[hour] = (hours[hour] or 0) - 1
        if string.find(member, '@', 9, true) then is_plain = false end
    end
    results[i + 3] = is_live and 1 or 0
end
if n > 0 and is_plain then
    call('HLEN', ST)
    call('HLEN', REC)
    call('HLEN', ATT)
    call('HLEN', HOUR)
    if bound <= now then call('ZCARD', PLAN) end
    if bound <= now then call('ZCARD', PEND) end
elseif n > 0 then
    look_through()
end
local ended_now = n > 0 and call('ZREM', LEASE, unpack(acked)) or 0
if ended_now < n then forget_doubles(results, members, entries) end
if n > 0 then
    call('HDEL', TOK, unpack(acked))
    call('HINCRBY', ST, 'completed', ended_now)
end
if n > 0 and is_plain then
    call('HDEL', REC, unpack(ids))
    if n == 1 or call('HLEN', ATT) > 1 then call('HDEL', ATT, unpack(ids)) end
end
for i = 1, is_plain and 0 or #members do
    if results[i + 3] == 1 then
        complete(members[i], sub(ARGV[ARGS * i + 1], SECRET_BYTES + 1))
    end
end
if ended_now == #members then results = {0, 0, 0, 'all'} end
return conclude(results)
