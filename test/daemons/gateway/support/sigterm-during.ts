import { connect } from 'node:net';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { startUpstream } from './echo-upstream.ts';
import { startProcesses } from './start-processes.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };

/** A request on a connection of its own: all that came until it ended. */
function exchange(port: number): Promise<string> {
  const head = `GET /api/v1/x HTTP/1.1\r\nhost: localhost\r\nauthorization: ${ADMIN.authorization}\r\n\r\n`;
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(head));
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
    });
    socket.on('close', () => resolve(text)).on('error', (error) => resolve(String(error)));
  });
}

interface Ending {
  processes: number;
  requests: number;
  /** How long the upstream takes for one. */
  delayMs(): number;
}

/** Ends a gateway when its upstream has three tenths of the requests; `cut`: what came instead of an answer. */
export async function sigtermDuring({ processes, requests, delayMs }: Ending) {
  const upstream = await startUpstream((_req, res) => void setTimeout(() => res.end('"ok"'), delayMs()));
  const gateway = await startProcesses({ gateway: { processes }, peers: { rest: upstream.url } });
  await gateway.allUp();
  const pids = [gateway.primaryPid(), ...gateway.siblingPids()];
  const answers = Array.from({ length: requests }, () => exchange(gateway.port));
  while (upstream.seen.length < requests * 0.3) await new Promise((resolve) => setTimeout(resolve, 1));
  for (const pid of pids) process.kill(pid, 'SIGTERM');
  const texts = await Promise.all(answers);
  return { cut: texts.filter((text) => !/^HTTP\/1\.1 200 [\s\S]*"ok"/.test(text)), pids };
}
