-- ACK. Items of three: member and secret of a token, result. Each result is 1, or 0 for a token
-- that is not of a live lease. All leases are ended at once; without retention all timers are
-- deleted at once, unless one of them is an occurrence, which another one may follow.

local ARGS = 3
local DUE_AT = 20 -- in a token

-- Returns whether a lease has not ended; if all was swept, no other lease has a token.
local function is_running(member) -- rare
    local score = tonumber(call('ZSCORE', LEASE, member))
    return score and score > now
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

local results, members, acked, ids, seen = {0, 0, 0}, {}, {}, {}, {}
local is_plain = (stored[RETENTION_MS] or '0') == '0'
for at = 2, #ARGV, ARGS do
    members[#members + 1] = ARGV[at]
end
local entries, n = call('HMGET', TOK, unpack(members)), 0
for i = 1, #members do
    local at, member, entry = ARGS * i - 1, members[i], entries[i]
    local is_live = entry and string.sub(entry, 1, SECRET_BYTES) == ARGV[at + 1] and not seen[member]
    if is_live and not is_swept then is_live = is_running(member) end
    if is_live then
        n = n + 1
        seen[member], acked[n], ids[n] = ARGV[at + 2], member, string.sub(member, 9)
        local hour = math.floor(struct.unpack('>i7', entry, DUE_AT) / HOUR_MS)
        hours[hour] = (hours[hour] or 0) - 1
        if string.find(member, '@', 9, true) then is_plain = false end
    end
    results[i + 3] = is_live and 1 or 0
end
if n > 0 then
    call('ZREM', LEASE, unpack(acked))
    call('HDEL', TOK, unpack(acked))
    call('HINCRBY', ST, 'completed', n)
end
if n > 0 and is_plain then
    call('HDEL', REC, unpack(ids))
    if n == 1 or call('HLEN', ATT) > 1 then call('HDEL', ATT, unpack(ids)) end
end
for i = 1, is_plain and 0 or n do
    complete(acked[i], seen[acked[i]])
end
return conclude(results)
