-- CLAIM. Items of five: count, lease (0: that of the topic), secret, name of the worker, bytes of
-- envelopes after which a claim stops. Each result is a list of deliveries: id, due, envelope,
-- length of the lease. The secret of the n-th delivery of an item is that of the item and n, from
-- 0.
--
-- A member that is not UTF-8 is removed, as the package does: some of its clients deliver nothing
-- behind it. So is a member without an envelope.

local ARGS = 5
local SLICE, REMOVED_MAX = 100, 1000

local function continues(byte, low, high)
    return byte and byte >= (low or 128) and byte <= (high or 191)
end

-- Returns the number of bytes of the character at a place of a text; nil if it is not UTF-8.
local function character(text, at)
    local a, b, c, d = string.byte(text, at, at + 3)
    if a < 128 then return 1 end
    if a >= 194 and a <= 223 then return continues(b) and 2 end
    if a >= 224 and a <= 239 then
        local first = continues(b, a == 224 and 160, a == 237 and 159)
        return first and continues(c) and 3
    end
    if a >= 240 and a <= 244 then
        local first = continues(b, a == 240 and 144, a == 244 and 143)
        return first and continues(c) and continues(d) and 4
    end
end

local function is_text(text)
    local at = string.find(text, '[\128-\255]')
    while at and at <= #text do
        local bytes = character(text, at)
        if not bytes then return false end
        at = at + bytes
    end
    return true
end

local removed = 0

-- Takes a timer for a claim. Returns its envelope; nil if the member is none.
local function take(id, secret, length)
    local envelope = is_text(id) and call('HGET', PAYLOADS, id)
    if not envelope then
        remove(id)
        removed = removed + 1
        return nil
    end
    local stop = now + length
    call('ZADD', TIMELINE, print_score(stop), id)
    write_lease(secret, {stop = stop, length = length, digest = redis.sha1hex(envelope), id = id})
    return envelope
end

local function claim(at)
    local count, bytes_max = tonumber(ARGV[at]), tonumber(ARGV[at + 4])
    local length = tonumber(ARGV[at + 1])
    local deliveries, bytes = {}, 0
    if length == 0 then length = cfg.lease end
    while #deliveries < count and bytes <= bytes_max and removed < REMOVED_MAX do
        local slice = call('ZRANGEBYSCORE', TIMELINE, '-inf', now_score, 'WITHSCORES', 'LIMIT', 0,
                           math.min(count - #deliveries, SLICE))
        if #slice == 0 then break end
        for i = 1, #slice, 2 do
            if bytes > bytes_max then break end
            local secret = ARGV[at + 2] .. struct.pack('>I2', #deliveries)
            local envelope = take(slice[i], secret, length)
            if envelope then
                local due = to_ms(tonumber(slice[i + 1]))
                deliveries[#deliveries + 1] = {slice[i], due, envelope, length}
                bytes = bytes + #envelope
            end
        end
    end
    return deliveries
end

sweep()
local results, count = {}, 0
for at = 3, #ARGV, ARGS do
    local deliveries = cfg.paused and {} or claim(at)
    count = count + #deliveries
    results[#results + 1] = deliveries
end
if count > 0 then call('HINCRBY', STATE, 'claimed', count) end
return reply(results)
