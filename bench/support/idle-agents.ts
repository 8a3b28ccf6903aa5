import { readFileSync } from 'node:fs';
import { WebSocket } from 'ws';
import { type GatewayFrame, HOST_PROTOCOL } from '../../src/contracts/index.ts';
import { answerChallenge, type HostKeys } from '../../src/kit/security/host-proof.ts';

/** Connects many idle agents: `idle-agents.ts <gateway> <file of hosts>`. Each line on stdin triggers a heartbeat of all. */
const [url, file] = process.argv.slice(2);
const hosts = JSON.parse(readFileSync(file!, 'utf8')) as Array<{
  hostId: string;
  token: string;
  keys: HostKeys;
}>;
const CONCURRENT_CONNECTS = 100;
const sockets: WebSocket[] = [];
let onAck = (): void => {};

function connect({ hostId, token, keys }: (typeof hosts)[number]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url!.replace('http', 'ws')}/hosts/connect`, {
      headers: { authorization: `Bearer ${token}` },
      perMessageDeflate: false,
    });
    socket.on('error', reject);
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as GatewayFrame;
      if (frame.type === 'challenge') {
        const proof = answerChallenge(frame, keys, hostId);
        socket.send(JSON.stringify({ type: 'hello', protocol: HOST_PROTOCOL, agentVersion: 'bench', proof }));
      } else if (frame.type === 'welcome') {
        sockets.push(socket);
        resolve();
      } else onAck();
    });
  });
}

let next = 0;
await Promise.all(
  Array.from({ length: CONCURRENT_CONNECTS }, async () => {
    while (next < hosts.length) await connect(hosts[next++]!);
  }),
);
process.stdout.write('connected\n');
process.stdin.on('data', () => {
  let left = sockets.length;
  onAck = () => {
    if (--left === 0) process.stdout.write('acknowledged\n');
  };
  for (const socket of sockets) socket.send(JSON.stringify({ type: 'heartbeat', at: 1 }));
});
