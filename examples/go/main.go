// A small client of Stado's control socket, with Go's standard library alone. Take client.go as it is; this file is its
// command:
//
//	go run . list
//	go run . resolve checkout.postgres
//	go run . register checkout.api 8000    (until it is interrupted)
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client := NewClient(os.Getenv("DEVMESH_SOCKET"))
	switch {
	case len(words) == 1 && words[0] == "list":
		services, err := client.Services(ctx)
		for _, service := range services {
			fmt.Println(service.Name, service.Status, service.Frontend.Endpoint())
		}
		return err
	case len(words) == 2 && words[0] == "resolve":
		address, err := client.Address(ctx, words[1])
		if err == nil {
			fmt.Println(address)
		}
		return err
	case len(words) == 3 && words[0] == "register":
		port, err := strconv.Atoi(words[2])
		if err != nil {
			return err
		}
		registration, err := client.Register(ctx, Request{Name: words[1], Backend: Backend{"127.0.0.1", port}})
		if err != nil {
			return err
		}
		fmt.Println(words[1], "is at", registration.Frontend.Endpoint())
		registration.Keep(ctx)
		registration.Close()
		return nil
	}
	return fmt.Errorf("usage: list | resolve NAME | register NAME PORT")
}
