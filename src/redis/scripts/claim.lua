-- CLAIM. Items of five: count, lease (0: that of the timer or topic), secret, name of the worker,
-- bytes of payloads and headers after which a claim stops. Each result is a list: the usual length
-- of a lease; false, or of deliveries that have an `att` or a lease of another length three values:
-- the number of the delivery from 0 on, `att` or false, length of the lease; then of each delivery
-- its id and its record.
--
-- All claims of a call are served from one range of ready timers, first come, first served.

local ARGS = 5
local COUNT_MAX = 1000
local SLICE = 50
local NOTHING = string.rep('\0', 21) -- expiry, expires and lease of most records

local may_claim = is_known and stored[PAUSED] ~= '1'
if may_claim and not is_swept then return again() end -- it must not meet timers that have expired
local total, members, has_atts = 0, {}, false
for at = 2, #ARGV, ARGS do
    total = total + tonumber(ARGV[at])
end
if may_claim then
    members = call('ZRANGEBYSCORE', PEND, '-inf', now_text, 'LIMIT', '0',
                   math.min(total, COUNT_MAX))
    has_atts = #members == 1 or (#members > 1 and call('HLEN', ATT) > 1)
end

-- Ids, records and `att` of members from..to. They are read in slices: most claims with many large
-- payloads end long before their count.
local from, to, ids, records, atts = 1, 0, {}, {}, {}
-- What the claims of this call take, for variadic calls at the end.
local leases, tokens, unexpiring = {}, {}, {}
local results, i = {0, 0, 0}, 1
for at = 2, #ARGV, ARGS do
    local count, wanted, limit = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4])
    local secret, worker = ARGV[at + 2], ARGV[at + 3]
    local usual = wanted > 0 and wanted or tonumber(stored[LEASE_MS] or 30000)
    local usual_time = now + usual
    local usual_end = string.format('%.0f', usual_time)
    local usual_start = secret .. struct.pack('>I7', usual)
    local deliveries, n, bytes, last = {usual, false}, 2, 0, math.min(#members, i + count - 1)
    if i <= last and usual_time < soonest then soonest = usual_time end
    while i <= last and bytes <= limit do
        if i > to then
            from, to, ids = i, math.min(i + SLICE - 1, #members), {}
            for k = i, to do
                ids[k - i + 1] = string.sub(members[k], 9)
            end
            records = call('HMGET', REC, unpack(ids))
            if has_atts then atts = call('HMGET', ATT, unpack(ids)) end
        end
        local k, member = i - from + 1, members[i]
        local record = records[k]
        local lease, lease_end, start = usual, usual_end, usual_start
        if string.sub(record, 23, 43) ~= NOTHING then
            local expiry, _, own = struct.unpack('>i7I7I7', record, 23)
            if expiry ~= 0 then unexpiring[#unexpiring + 1] = ids[k] end
            if wanted == 0 and own > 0 then
                lease, lease_end = own, now + own
                start = secret .. struct.pack('>I7', lease)
                if lease_end < soonest then soonest = lease_end end
            end
        end
        leases[2 * i - 1], leases[2 * i] = lease_end, member
        tokens[2 * i - 1], tokens[2 * i] = member, start .. string.sub(record, 9, 15) .. worker
        -- the bytes of payload and headers: a number of four bytes
        bytes = bytes +
            (#record < 256 and string.byte(record, 47) or struct.unpack('>I4', record, 44))
        if atts[k] or lease ~= usual then
            local extras = deliveries[2] or {}
            deliveries[2], extras[#extras + 1] = extras, n / 2 - 1
            extras[#extras + 1], extras[#extras + 2] = atts[k] or false, lease
        end
        deliveries[n + 1], deliveries[n + 2] = ids[k], record
        n, i = n + 2, i + 1
    end
    results[#results + 1] = deliveries
end
if i > 1 then
    if soonest < earliest then earliest = soonest end
    call('ZCARD', LEASE)
    call('HLEN', TOK)
    call('HLEN', ST)
    if bound <= now then call('ZCARD', PLAN) end
    if #unexpiring > 0 then call('ZCARD', EXP) end
    call('ZREM', PEND, unpack(members, 1, i - 1))
    call('ZADD', LEASE, unpack(leases))
    call('HSET', TOK, unpack(tokens))
    if #unexpiring > 0 then call('ZREM', EXP, unpack(unexpiring)) end
    call('HINCRBY', ST, 'claimed', i - 1)
end
return conclude(results)
