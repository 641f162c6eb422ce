// A server in a process of its own that answers a page only when so many requests for pages are there at the same time.
//     node slow-server-child.mjs COUNT [CERT_FILE KEY_FILE]
// Prints `port N` when it listens, and then `all` once all are there.
import { readFileSync } from 'node:fs'
import net from 'node:net'
import tls from 'node:tls'

const [count, cert, key] = process.argv.slice(2)
const waiting = new Set()
const html = '<!doctype html><title>slow</title><p>At last.'
const answer = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${html.length}\r\n\r\n${html}`
let isOpen = false

function serve(socket) {
  let head = ''
  socket.on('error', () => {})
  socket.on('close', () => waiting.delete(socket))
  socket.on('data', (data) => {
    head += data.toString('latin1')
    if (!head.includes('\r\n\r\n')) return
    const isRobots = head.startsWith('GET /robots.txt ')
    head = ''
    if (isRobots) return socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
    if (isOpen) return socket.write(answer)
    waiting.add(socket)
    if (waiting.size < Number(count)) return
    isOpen = true
    console.log('all')
    for (const each of waiting) each.write(answer)
    waiting.clear()
  })
}

const server = cert === undefined ? net.createServer(serve) : tls.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, serve)
server.on('tlsClientError', () => {})
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => console.log(`port ${server.address().port}`))
process.on('disconnect', () => process.exit())
