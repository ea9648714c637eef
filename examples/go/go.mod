module stado.example/client

go 1.19
