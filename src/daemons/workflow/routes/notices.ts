import { readRunNotices } from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import type { WorkflowServices } from '../services.ts';

/** Reads notices for runs of this process, when another workflow service has stored some. */
export function noticeRoutes(http: Http, { engine, internalSecret }: WorkflowServices): void {
  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  // A separate scope limits the hook to this route. The caller is identified before the body is read.
  http.register((own, _options, done) => {
    own.addHook('onRequest', async (request) => {
      await identify(request);
    });
    mount(own, readRunNotices, { auth: 'open' }, async ({ body }) => {
      // Another process may listen at the address of a process that has ended.
      const isRead = body.fence === engine.fence;
      if (isRead) await engine.readNotices();
      return { isRead };
    });
    done();
  });
}
