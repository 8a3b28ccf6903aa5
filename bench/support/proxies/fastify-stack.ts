import httpProxy from '@fastify/http-proxy';
import jwt from '@fastify/jwt';
import fastify from 'fastify';

/** A common stack: fastify, @fastify/http-proxy, @fastify/jwt. `argv`: upstream, JWT secret, `log` for request logging. */
const [, , upstream, secret, log] = process.argv as string[];
const app = fastify({
  logger: log === 'log' ? { stream: (await import('node:fs')).createWriteStream('/dev/null') } : false,
});
await app.register(jwt, { secret: secret! });
await app.register(httpProxy, {
  upstream: upstream!,
  prefix: '/api/v1',
  rewritePrefix: '/api/v1',
  preHandler: async (request, reply) => {
    try {
      await request.jwtVerify();
    } catch (error) {
      await reply.code(401).send(error);
    }
  },
});
await app.listen({ host: '127.0.0.1', port: 0 });
console.log((app.server.address() as import('node:net').AddressInfo).port);
