// A worker for the topic "mail", on go-redis: go run . [PORT]
//
// The worker claims a timer when it is due, sends the mail, and acknowledges the timer after that. A
// goroutine extends the lease while the mail is being sent. An error fails the timer, which comes
// again by its retry policy. SIGTERM stops the worker when the current mail is done.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func send(payload string) error {
	var mail struct {
		To      string
		Seconds float64
	}
	if err := json.Unmarshal([]byte(payload), &mail); err != nil {
		return err
	}
	if mail.To == "" {
		return errors.New("the mail has no address")
	}
	time.Sleep(time.Duration(mail.Seconds * float64(time.Second))) // stands for the real work
	fmt.Println("mail to", mail.To)
	return nil
}

// Keeps the lease alive until done is closed or the lease is lost.
func extend(server *redis.Client, token string, lease time.Duration, done chan struct{}) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			var refused redis.Error
			if err := server.Do(ctx, "EXTEND", token).Err(); errors.As(err, &refused) {
				return // STALE: cancelled, or another worker has the timer
			}
		}
	}
}

func work(server *redis.Client, delivery []interface{}) {
	token, id, payload := delivery[0].(string), delivery[2], delivery[3].(string)
	lease := time.Duration(delivery[7].(int64)) * time.Millisecond
	done := make(chan struct{})
	go extend(server, token, lease, done)
	outcome := []interface{}{"ACK", token}
	if err := send(payload); err != nil {
		outcome = []interface{}{"FAIL", token, "REASON", err.Error()}
	}
	close(done)
	if err := server.Do(ctx, outcome...).Err(); err != nil {
		log.Println(id, err)
	}
}

func main() {
	port := "7878"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	// The client must wait longer for a reply than the server waits for a timer.
	server := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ReadTimeout: 10 * time.Second})
	stopping := make(chan os.Signal, 1)
	signal.Notify(stopping, syscall.SIGTERM)
	for len(stopping) == 0 {
		claimed, err := server.Do(ctx, "CLAIM", "mail", "WAIT", "2s", "WORKER", "go").Slice()
		if err != nil {
			log.Println(err)
			time.Sleep(time.Second) // the server restarts; what was not acknowledged comes again
		}
		for _, delivery := range claimed {
			work(server, delivery.([]interface{}))
		}
	}
}
