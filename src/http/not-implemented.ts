import type { Endpoint } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors.ts';
import type { Http } from './server.ts';

/** Serves an endpoint that this version does not have yet: whoever may call it is told so with 501, whatever they send. The API description says it too. */
export function mountNotImplemented(http: Http, endpoint: Endpoint): void {
  const { method, path } = endpoint;
  http.kit.endpoints.push({
    method,
    path,
    endpoint: { ...endpoint, errors: [...(endpoint.errors ?? []), 'NOT_IMPLEMENTED'] },
    authenticated: true,
  });
  const refuse = (): never => {
    throw new PlatformError('NOT_IMPLEMENTED', `${method} ${path} is not available in this version.`);
  };
  http.route({
    method,
    url: path,
    async onRequest(request) {
      request.caller = await http.kit.authenticate(request);
      refuse();
    },
    handler: refuse,
  });
}
