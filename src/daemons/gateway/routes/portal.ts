import {
  createPortalLink,
  currentPortal,
  listPortalLinks,
  revokePortalLinks,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { PortalCaller, PortalLinks } from '../domain/identity/portal-links.ts';

const CREATIONS_PER_MINUTE = 60;

/** Routes of the links to the endpoints of one application. @spec docs/portal.md */
export function portalRoutes(http: Http, { portalLinks }: { portalLinks: PortalLinks }): void {
  mount(
    http,
    createPortalLink,
    { auth: 'caller', perMinute: CREATIONS_PER_MINUTE },
    ({ body, caller, reply }) => {
      reply.header('cache-control', 'no-store');
      return portalLinks.create(caller, body);
    },
  );
  mount(http, listPortalLinks, { auth: 'caller' }, async ({ query, caller }) => ({
    items: await portalLinks.list(caller, query.application),
  }));
  mount(http, revokePortalLinks, { auth: 'caller' }, async ({ query, caller }) => ({
    revoked: await portalLinks.revoke(caller, query),
  }));
  mount(http, currentPortal, { auth: 'caller' }, ({ caller }) => {
    const { application, expiresAt } = caller as Partial<PortalCaller>;
    if (application === undefined || expiresAt === undefined)
      throw new PlatformError('NOT_FOUND', 'The token of this call does not belong to a link to a portal.');
    return { application, expiresAt };
  });
}
