// Follows the investigations of Casebook and loses no message: docs/nats.md, "Following without loss".
//
//	go run follow.go -nats nats://127.0.0.1:4222 -credentials credentials/integration -name siem -output siem.ndjson
//
// Appends one line of JSON for each message, and acknowledges it after it is on the disk. A message may come twice:
// drop those whose stream and sequence you have.
package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	api = "casebook.api"
	// Under an artifact: the parts that it has.
	parts = "Casebook-Parts"
	// Under a part of an artifact that is compressed: how.
	packed = "Casebook-Packed"
	// In place of the body of a message that is too large: the artifact that holds it.
	artifact = "Casebook-Artifact"
)

type consumer struct {
	Stream   string `json:"stream"`
	Subject  string `json:"subject"`
	Consumer string `json:"consumer"`
}

type line struct {
	Stream   string          `json:"stream"`
	Sequence uint64          `json:"sequence"`
	Subject  string          `json:"subject"`
	Body     json.RawMessage `json:"body"`
}

// The bytes of an artifact, whose name is their hash.
func read(connection *nats.Conn, name string) ([]byte, error) {
	var body []byte
	for n, all := 0, 1; n < all; n++ {
		subject := fmt.Sprintf("%s.DIRECT.GET.CASEBOOK_ARTIFACTS.casebook.artifact.%s.%d", api, name, n)
		part, err := connection.Request(subject, nil, 10*time.Second)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			if all, err = strconv.Atoi(part.Header.Get(parts)); err != nil {
				return nil, fmt.Errorf("artifact %s: %w", name, err)
			}
		}
		data := part.Data
		if part.Header.Get(packed) == "zlib" {
			if data, err = unpacked(data); err != nil {
				return nil, fmt.Errorf("artifact %s: %w", name, err)
			}
		}
		body = append(body, data...)
	}
	if hash := sha256.Sum256(body); hex.EncodeToString(hash[:]) != name {
		return nil, fmt.Errorf("artifact %s has other bytes", name)
	}
	return body, nil
}

func unpacked(data []byte) ([]byte, error) {
	reader, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// The JSON of a message: a list of events, a Timeline, a report, or an accepted alert.
func content(connection *nats.Conn, message *nats.Msg) ([]byte, error) {
	if name := message.Header.Get(artifact); name != "" {
		return read(connection, name)
	}
	var large struct {
		Artifact string `json:"artifact"`
		Bytes    int    `json:"bytes"`
	}
	if json.Unmarshal(message.Data, &large) == nil && large.Artifact != "" && large.Bytes > 0 {
		return read(connection, large.Artifact)
	}
	return message.Data, nil
}

// Asks a Hub for our consumers, which it makes once, until one answers.
func consumers(connection *nats.Conn, name string) []consumer {
	request, err := json.Marshal(map[string]string{"name": name, "from": "start"})
	if err != nil {
		log.Fatal(err)
	}
	for ; ; time.Sleep(time.Second) {
		message, err := connection.Request("casebook.follow", request, 5*time.Second)
		if err != nil {
			log.Printf("no Hub answers: %v", err)
			continue
		}
		var answer struct {
			Consumers []consumer `json:"consumers"`
			Error     string     `json:"error"`
		}
		if err := json.Unmarshal(message.Data, &answer); err != nil || answer.Error != "" {
			log.Fatalf("%s %v", answer.Error, err)
		}
		return answer.Consumers
	}
}

func follow(connection *nats.Conn, one consumer, write func(line) error) {
	stream, err := connection.JetStream(nats.APIPrefix(api))
	if err != nil {
		log.Fatal(err)
	}
	var pull *nats.Subscription
	for ; ; time.Sleep(time.Second) {
		if pull, err = stream.PullSubscribe(one.Subject, "", nats.Bind(one.Stream, one.Consumer)); err == nil {
			break
		}
		log.Printf("%s: %v", one.Stream, err)
	}
	for {
		messages, err := pull.Fetch(100, nats.MaxWait(5*time.Second))
		if err != nil {
			// Nothing new, or the server is away: the client connects again by itself.
			time.Sleep(200 * time.Millisecond)
			continue
		}
		for _, message := range messages {
			body, err := content(connection, message)
			if err != nil {
				// Without an acknowledgement it comes again.
				log.Printf("cannot read %s: %v", message.Subject, err)
				continue
			}
			place, err := message.Metadata()
			if err != nil {
				log.Fatal(err)
			}
			if err := write(line{one.Stream, place.Sequence.Stream, message.Subject, body}); err != nil {
				log.Fatal(err)
			}
			if err := message.Ack(); err != nil {
				log.Printf("not acknowledged, so it comes again: %v", err)
			}
		}
	}
}

func main() {
	servers := flag.String("nats", "nats://127.0.0.1:4222", "the servers")
	credentials := flag.String("credentials", "", "a file with user:password")
	ca := flag.String("ca", "", "the certificate of the authority of the server")
	name := flag.String("name", "", "the name of your consumers")
	file := flag.String("output", "", "the file to append to")
	flag.Parse()
	secret, err := os.ReadFile(*credentials)
	if err != nil {
		log.Fatal(err)
	}
	user, password, _ := strings.Cut(strings.TrimSpace(string(secret)), ":")
	options := []nats.Option{
		nats.UserInfo(user, password), nats.CustomInboxPrefix("_INBOX_" + user),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.RetryOnFailedConnect(true),
	}
	if *ca != "" {
		options = append(options, nats.RootCAs(*ca))
	}
	connection, err := nats.Connect(*servers, options...)
	if err != nil {
		log.Fatal(err)
	}
	output, err := os.OpenFile(*file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	var one sync.Mutex
	write := func(l line) error {
		one.Lock()
		defer one.Unlock()
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if _, err := output.Write(append(text, '\n')); err != nil {
			return err
		}
		return output.Sync()
	}
	made := consumers(connection, *name)
	fmt.Printf("following %d streams\n", len(made))
	for _, each := range made {
		go follow(connection, each, write)
	}
	select {}
}
