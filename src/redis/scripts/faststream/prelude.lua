-- prelude - what every script of topics of the layout faststream has in common. It stands in front
-- of each body.
--
-- The layout is that of the Python package faststream-redis-timers, which reads and writes the
-- first two keys at any time:
--
--     TIMELINE  zset: id -> time in seconds, when the timer is due, or when its lease ends
--     PAYLOADS  hash: id -> envelope
--     STATE     hash: revision of the settings, lease_ms, paused, statistics. Ours, like the rest
--     LEASES    hash: secret of a token -> its lease (LEASE_HEAD, SHA-1 of the envelope, id)
--     ENDS      zset: secret -> end of the lease in ms
--
-- A lease of ours is live while the timer has the score and the envelope that the lease has given
-- it. Scores are compared as numbers: their texts differ (519.79297 is read as 519.7929699).
--
-- A script replies {now, first due after now or -1, -1, ...}, in ms.

local TIMELINE, PAYLOADS, STATE, LEASES, ENDS = unpack(KEYS)
local LEASE_HEAD = '>I7I7' -- end, length; in ms
local DIGEST, DIGEST_END = 15, 54
local SWEEP_MAX, TIME_END = 100, 253402300799999
local call = redis.call

local now, now_score = tonumber(ARGV[1]), nil
if now then
    now_score = string.format('%.3f', now / 1000)
else
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
    now_score = string.format('%d.%06d', time[1], time[2]) -- the package has microseconds, too
end

local cfg = {}
do
    local v = call('HMGET', STATE, 'revision', 'lease_ms', 'paused')
    if ARGV[2] ~= '' and v[1] ~= ARGV[2] then
        return redis.error_reply('LAYOUT another node has changed the layout of the topic')
    end
    cfg.lease, cfg.paused = tonumber(v[2] or 30000), v[3] == '1'
end

-- A key of another type fails here: nothing takes back what a script has changed before it fails.
-- Without a revision the topic does not have these keys yet, and the script looks at them itself.
if ARGV[2] ~= '' then
    call('ZCARD', TIMELINE)
    call('HLEN', PAYLOADS)
    call('HLEN', LEASES)
    call('ZCARD', ENDS)
end

local function print_score(ms)
    return string.format('%.3f', ms / 1000)
end

-- Returns a score in ms: the first one at which the timer is due.
local function to_ms(score)
    local ms = math.ceil(score * 1000 - 0.001)
    return math.max(-TIME_END, math.min(ms, TIME_END))
end

local function score_of(id)
    return tonumber(call('ZSCORE', TIMELINE, id) or false)
end

local function remove(id)
    call('ZREM', TIMELINE, id)
    call('HDEL', PAYLOADS, id)
end

local function drop(secret)
    call('HDEL', LEASES, secret)
    call('ZREM', ENDS, secret)
end

local function read_lease(entry)
    local stop, length = struct.unpack(LEASE_HEAD, entry)
    return {stop = stop, length = length, digest = string.sub(entry, DIGEST, DIGEST_END),
            id = string.sub(entry, DIGEST_END + 1)}
end

local function write_lease(secret, lease)
    call('HSET', LEASES, secret,
         struct.pack(LEASE_HEAD, lease.stop, lease.length) .. lease.digest .. lease.id)
    call('ZADD', ENDS, lease.stop, secret)
end

-- Returns the envelope of the timer of a lease, or nil if it is not the one that was claimed.
local function leased(lease)
    local score = score_of(lease.id)
    if score ~= tonumber(print_score(lease.stop)) then return nil end
    local envelope = call('HGET', PAYLOADS, lease.id)
    if not envelope or redis.sha1hex(envelope) ~= lease.digest then return nil end
    return envelope
end

-- Returns the live lease of a token and the envelope of its timer; or nil.
local function find_lease(secret)
    local entry = call('HGET', LEASES, secret)
    if not entry then return nil end
    local lease = read_lease(entry)
    local envelope = lease.stop > now and leased(lease)
    if envelope then return lease, envelope end
    drop(secret)
end

-- Forgets leases that have ended.
local function sweep()
    local ended = call('ZRANGEBYSCORE', ENDS, '-inf', now, 'LIMIT', 0, SWEEP_MAX)
    local lost = 0
    for _, secret in ipairs(ended) do
        local entry = call('HGET', LEASES, secret)
        if entry and leased(read_lease(entry)) then lost = lost + 1 end
        drop(secret)
    end
    if lost > 0 then call('HINCRBY', STATE, 'lost', lost) end
end

-- The conflict policies of SCHEDULE. Returns its result if they keep an old timer, else nil.
local REPLACE, REJECT = 0, 2

local function stay(id, policy)
    local old = policy ~= REPLACE and score_of(id) and call('HGET', PAYLOADS, id)
    if not old then return nil end
    call('HSET', PAYLOADS, id, old) -- WAIT proves only what this connection has written
    return policy == REJECT and 'taken' or 'kept'
end

local function reply(results)
    local first = call('ZRANGEBYSCORE', TIMELINE, '(' .. now_score, '+inf', 'WITHSCORES', 'LIMIT',
                       0, 1)[2]
    table.insert(results, 1, -1)
    table.insert(results, 1, first and not cfg.paused and to_ms(tonumber(first)) or -1)
    table.insert(results, 1, now)
    return results
end
