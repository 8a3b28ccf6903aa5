import { createServer } from 'node:net';

/** The upstream behind every proxy: answers 1 KB on bare sockets, so that it is never the bottleneck. */
const BODY = JSON.stringify({ items: 'x'.repeat(1010) });
const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\ncache-control: no-cache\r\netag: "abc"\r\ndate: Sat, 21 Nov 2026 00:00:00 GMT\r\n\r\n${BODY}`,
);

createServer((socket) => {
  socket.setNoDelay(true);
  let held = '';
  socket.on('data', (chunk) => {
    held = held === '' ? chunk.toString('latin1') : held + chunk.toString('latin1');
    const head = held.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/\r\ncontent-length: ?(\d+)/i.exec(held.slice(0, head + 2))?.[1] ?? 0);
    if (held.length < head + 4 + length) return;
    held = held.slice(head + 4 + length);
    socket.write(ANSWER);
  });
  socket.on('error', () => {});
}).listen(0, '127.0.0.1', 4096, function (this: import('node:net').Server) {
  console.log((this.address() as import('node:net').AddressInfo).port);
});
