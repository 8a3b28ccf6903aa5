import { text } from 'node:stream/consumers';
import type { Send } from '../http/client.ts';
import { nodeHttp } from '../supervisor/node-http.ts';

/**
 * Sends a request with `node:http`, because loading Node's fetch takes a quarter of a command's run time. Redirects are
 * not followed, because a redirect could leak the token.
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
