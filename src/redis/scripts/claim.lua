-- CLAIM. Items of five: count, lease (0: that of the timer or topic), secret, name of the worker,
-- bytes of payloads and headers after which a claim stops. Each result is a list of deliveries: id,
-- record, `att` or false, length of the lease.
--
-- All claims of a call are served from one range of ready timers, first come, first served.

local ARGS = 5
local COUNT_MAX = 1000
local SLICE = 50

-- Returns the id, record and `att` of a member. They are read in slices: most claims with many large
-- payloads end long before their count.
local slice = {from = 1, ids = {}}

local function read(members, i)
    if i >= slice.from + #slice.ids then
        slice.from, slice.ids = i, {}
        for k = i, math.min(i + SLICE - 1, #members) do
            slice.ids[k - i + 1] = string.sub(members[k], 9)
        end
        slice.records = call('HMGET', REC, unpack(slice.ids))
        slice.atts = call('HMGET', ATT, unpack(slice.ids))
    end
    local at = i - slice.from + 1
    return slice.ids[at], slice.records[at], slice.atts[at]
end

local function total_count()
    local total = 0
    for at = 2, #ARGV, ARGS do
        total = total + tonumber(ARGV[at])
    end
    return math.min(total, COUNT_MAX)
end

-- What the claims of this call take, for variadic calls at the end.
local taken = {members = {}, leases = {}, tokens = {}, unexpiring = {}}

local function take(member, id, record, at)
    local r = read_record(record)
    local lease = tonumber(ARGV[at + 1])
    if lease == 0 then lease = r.lease > 0 and r.lease or cfg.lease end
    taken.members[#taken.members + 1] = member
    taken.leases[#taken.leases + 1] = print_number(now + lease)
    taken.leases[#taken.leases + 1] = member
    taken.tokens[#taken.tokens + 1] = member
    taken.tokens[#taken.tokens + 1] = struct.pack(TOK_HEAD, ARGV[at + 2], lease, r.due) ..
        ARGV[at + 3]
    if r.expiry ~= 0 then taken.unexpiring[#taken.unexpiring + 1] = id end
    happens(now + lease)
    return r, lease
end

local function write_taken()
    if #taken.members == 0 then return end
    call('ZREM', PEND, unpack(taken.members))
    call('ZADD', LEASE, unpack(taken.leases))
    heads[LEASE] = nil
    call('HSET', TOK, unpack(taken.tokens))
    if #taken.unexpiring > 0 then
        call('ZREM', EXP, unpack(taken.unexpiring))
        heads[EXP] = nil
    end
    call('HINCRBY', ST, 'claimed', #taken.members)
end

local function serve()
    local results, next_at = {}, 1
    local members = call('ZRANGEBYSCORE', PEND, '-inf', now_text, 'LIMIT', 0, total_count())
    for at = 2, #ARGV, ARGS do
        local deliveries, bytes = {}, 0
        while next_at <= #members and #deliveries < tonumber(ARGV[at]) and
            bytes <= tonumber(ARGV[at + 4]) do
            local id, record, att = read(members, next_at)
            local r, lease = take(members[next_at], id, record, at)
            bytes = bytes + r.load
            deliveries[#deliveries + 1] = {id, record, att, lease}
            next_at = next_at + 1
        end
        results[#results + 1] = deliveries
    end
    return results
end

local function serve_nobody()
    local results = {}
    for _ = 2, #ARGV, ARGS do
        results[#results + 1] = {}
    end
    return results
end

if not cfg.known or cfg.paused then return reply(serve_nobody()) end
if not is_swept then return again() end -- a claim must not meet timers that have expired
local results = serve()
write_taken()
return reply(results)
