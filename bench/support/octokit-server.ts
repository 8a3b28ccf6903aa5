import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { pathToFileURL } from 'node:url';

/** GitHub's middleware with one handler: `octokit-server.ts <folder with @octokit/webhooks installed> <secret>`. */
const [modules, secret] = process.argv.slice(2);
const file = createRequire(`${modules}/package.json`).resolve('@octokit/webhooks');
const { createNodeMiddleware, Webhooks } = await import(pathToFileURL(file).href);
const webhooks = new Webhooks({ secret });
webhooks.on('issues', () => {});

const server: Server = createServer(createNodeMiddleware(webhooks, { path: '/' }));
server.listen(0, '127.0.0.1', () => {
  console.log((server.address() as AddressInfo).port);
});
