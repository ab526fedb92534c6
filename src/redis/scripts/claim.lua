-- CLAIM. Items of five: count, lease (0: that of the timer or topic), secret, name of the worker,
-- bytes of payloads and headers after which a claim stops. Each result is a list of deliveries,
-- each of them four values: id, record, `att` or false, length of the lease.
--
-- All claims of a call are served from one range of ready timers, first come, first served.

local ARGS = 5
local COUNT_MAX = 1000
local SLICE = 50
local NOTHING = string.rep('\0', 21) -- expiry, expires and lease of most records

local function total_count()
    local total = 0
    for at = 2, #ARGV, ARGS do
        total = total + tonumber(ARGV[at])
    end
    return math.min(total, COUNT_MAX)
end

-- Ids, records and `att` of some members. They are read in slices: most claims with many large
-- payloads end long before their count.
local from, to, ids, records, atts = 1, 0, {}, {}, {}
local has_atts

local function read_slice(members)
    from, ids = to + 1, {}
    to = math.min(to + SLICE, #members)
    for i = from, to do
        ids[i - from + 1] = string.sub(members[i], 9)
    end
    records = call('HMGET', REC, unpack(ids))
    if has_atts then atts = call('HMGET', ATT, unpack(ids)) end
end

-- Returns the bytes of payload and headers; a number of four bytes.
local function load_of(record)
    if #record < 256 then return string.byte(record, 47) end
    return (struct.unpack('>I4', record, 44))
end

-- What the claims of this call take, for variadic calls at the end.
local leases, tokens, unexpiring = {}, {}, {}

-- Serves a claim from members[i] on. Returns its deliveries, and the index of the first member that
-- it leaves.
local function serve(at, members, i)
    local count, wanted, limit = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4])
    local secret, worker = ARGV[at + 2], ARGV[at + 3]
    local usual = wanted > 0 and wanted or tonumber(stored[LEASE_MS] or 30000)
    local usual_time = now + usual
    local usual_end, usual_start = print_number(usual_time), secret .. struct.pack('>I7', usual)
    local deliveries, bytes, last = {}, 0, math.min(#members, i + count - 1)
    if i <= last then ends(usual_time) end
    while i <= last and bytes <= limit do
        if i > to then read_slice(members) end
        local k, member = i - from + 1, members[i]
        local record = records[k]
        local lease, lease_end, start = usual, usual_end, usual_start
        if string.sub(record, 23, 43) ~= NOTHING then
            local r = read_record(record)
            if r.expiry ~= 0 then unexpiring[#unexpiring + 1] = ids[k] end
            if wanted == 0 and r.lease > 0 then
                lease, lease_end = r.lease, now + r.lease
                start = secret .. struct.pack('>I7', lease)
                ends(lease_end)
            end
        end
        leases[2 * i - 1] = lease_end
        leases[2 * i] = member
        tokens[2 * i - 1] = member
        tokens[2 * i] = start .. string.sub(record, 9, 15) .. worker
        bytes = bytes + load_of(record)
        local n = #deliveries
        deliveries[n + 1] = ids[k]
        deliveries[n + 2] = record
        deliveries[n + 3] = atts[k] or false
        deliveries[n + 4] = lease
        i = i + 1
    end
    return deliveries, i
end

local function take(members, count)
    call('ZREM', PEND, unpack(members, 1, count))
    call('ZADD', LEASE, unpack(leases))
    call('HSET', TOK, unpack(tokens))
    if #unexpiring > 0 then call('ZREM', EXP, unpack(unexpiring)) end
    call('HINCRBY', ST, 'claimed', count)
end

local may_claim = is_known and stored[PAUSED] ~= '1'
if may_claim and not is_swept then return again() end -- it must not meet timers that have expired
local results, members, next_at = {}, {}, 1
if may_claim then
    members = call('ZRANGEBYSCORE', PEND, '-inf', now_text, 'LIMIT', '0', total_count())
    has_atts = #members > 0 and call('HLEN', ATT) > 1
end
for at = 2, #ARGV, ARGS do
    results[#results + 1], next_at = serve(at, members, next_at)
end
if next_at > 1 then take(members, next_at - 1) end
return reply(results)
