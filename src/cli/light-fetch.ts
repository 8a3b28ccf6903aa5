import { text } from 'node:stream/consumers';
import type { Send } from '../http/client.ts';
import { nodeHttp } from './supervisor/node-http.ts';

/**
 * One request over `node:http`, which the control socket has loaded anyway: Node's fetch would be a quarter of a
 * command's whole time. Redirects are not followed, since they would carry the token elsewhere.
 */
export const lightFetch: Send = (target, { method, headers, body, signal }) =>
  new Promise((resolve, reject) => {
    const { protocol } = new URL(target);
    const { request } = protocol === 'https:' ? process.getBuiltinModule('node:https') : nodeHttp();
    const sent = request(target, { method, headers, agent: false, signal }, (reply) => {
      const status = reply.statusCode ?? 0;
      resolve({
        ok: status >= 200 && status < 300,
        status,
        headers: { get: (name) => reply.headers[name.toLowerCase()]?.toString() ?? null },
        text: () => text(reply),
      });
    });
    sent.on('error', (error) => reject(signal.aborted ? signal.reason : error));
    sent.end(body);
  });
