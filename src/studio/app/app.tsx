import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router } from 'preact-iso';
import { Failure, Loading } from '../ui/states.tsx';
import { NotFound } from './not-found.tsx';
import { restoreSession } from './session.ts';
import { session } from './session-state.ts';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

// Each screen is a file of its own, so that the first one shown needs little code.
const Overview = lazy(() => import('../screens/overview/overview.tsx'));
const Deliveries = lazy(() => import('../screens/deliveries/deliveries.tsx'));
const Delivery = lazy(() => import('../screens/deliveries/delivery.tsx'));
const Runs = lazy(() => import('../screens/runs/runs.tsx'));
const Run = lazy(() => import('../screens/runs/run.tsx'));

export function App() {
  const [error, setError] = useState<Error>();
  useEffect(() => {
    restoreSession().catch(setError);
  }, []);
  if (error) return <Failure error={error} onRetry={() => location.reload()} />;
  if (session.value === undefined) return <Loading what="your session" />;
  if (session.value === null) return <SignIn />;
  return (
    <LocationProvider scope="/studio">
      <ErrorBoundary>
        <Shell session={session.value}>
          <Router>
            <Route path="/studio/" component={Overview} />
            <Route path="/studio/deliveries" component={Deliveries} />
            <Route path="/studio/deliveries/:webhookId" component={Delivery} />
            <Route path="/studio/runs" component={Runs} />
            <Route path="/studio/runs/:runId" component={Run} />
            <Route default component={NotFound} />
          </Router>
        </Shell>
      </ErrorBoundary>
    </LocationProvider>
  );
}
