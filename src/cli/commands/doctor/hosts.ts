import { listHosts } from '../../../contracts/index.ts';
import { allPages, pageQueryOf } from '../../all-pages.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/** Reports plugins that must run on a host while no matching host is connected. */
export async function checkHosts({ loaded: { config }, running, context }: CheckTarget): Promise<Fact[]> {
  const onHosts = Object.entries(config.execution.plugins).filter(([, { backend }]) => backend === 'host');
  if (onHosts.length === 0) return [fine('no plugin runs on a host')];
  if (!running)
    return [
      fine(`${onHosts.length} plugins run on hosts, which can connect only while the platform is running`),
    ];
  const hosts = await allPages((cursor) =>
    context.client.call(listHosts, { query: pageQueryOf(undefined, cursor) }),
  );
  const online = hosts.filter(({ valid, status }) => valid && status === 'online');
  const facts = onHosts.flatMap(([id, { hostId, labels = {}, capability }]) => {
    const fits = online.some(
      (host) =>
        (hostId === undefined || host.hostId === hostId) &&
        (capability === undefined || host.capabilities.includes(capability)) &&
        Object.entries(labels).every(([name, value]) => host.labels[name] === value),
    );
    const which = hostId === undefined ? 'no matching host is online' : `its only host ${hostId} is offline`;
    return fits
      ? []
      : [failure(`The plugin ${id} cannot run: ${which}.`, 'Start the agent there with svc agent run.')];
  });
  return facts.length > 0 ? facts : [fine('every plugin on hosts has a matching host online')];
}
