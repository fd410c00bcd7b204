import { describe, expect, it } from 'vitest';

import { hostAndPort, mapOfCluster } from './cluster-map.ts';

const HEALTHY = `\
07c3 127.0.0.1:7001@17001,a.example myself,master - 0 0 1 connected 0-5460
67ed 127.0.0.1:7002@17002,b.example master - 0 1426238316232 2 connected 5461-10922
292f ::1:7003@17003 master - 0 1426238318243 3 connected 10923-16381 16382 16383 [93-<-67ed] [94->-67ed]
e7d1 127.0.0.1:7004@17004 slave 67ed 0 1426238316232 2 connected
aaaa 127.0.0.1:7005@17005 master - 0 1426238318243 0 connected
bbbb :0@0 master,noaddr - 0 0 0 disconnected
`;

const view = (text: string, host = '127.0.0.1') => ({ text, host });

describe('map of a cluster', () => {
  it('gives each slot to the master that it is listed under', () => {
    const { owners, masters } = mapOfCluster([view(HEALTHY)]);
    expect([owners[0], owners[93], owners[5_460]]).toEqual(Array(3).fill('127.0.0.1:7001'));
    expect([owners[5_461], owners[10_922]]).toEqual(Array(2).fill('127.0.0.1:7002'));
    expect([owners[10_923], owners[16_382], owners[16_383]]).toEqual(Array(3).fill('::1:7003'));
    expect(masters).toEqual(new Set(['127.0.0.1:7001', '127.0.0.1:7002', '::1:7003', '127.0.0.1:7005']));
  });

  it('uses the higher epoch in any order of views: a master that was away does not know its successor', () => {
    const behind = view('67ed 127.0.0.1:7002@17002 myself,master - 0 0 2 connected 5461-10922\n');
    const after = view(
      '67ed 127.0.0.1:7002@17002 master,fail - 0 0 2 connected\ne7d1 127.0.0.1:7004@17004 master - 0 0 4 connected 5461-10922\n',
    );
    for (const views of [
      [behind, after],
      [after, behind],
    ]) {
      expect(mapOfCluster(views).owners[5_461]).toBe('127.0.0.1:7004');
    }
  });

  it('keeps a failed master until another one replaces it', () => {
    const { owners } = mapOfCluster([view('67ed 127.0.0.1:7002@17002 master,fail - 0 0 2 disconnected 5461-10922\n')]);
    expect(owners[5_461]).toBe('127.0.0.1:7002');
    expect(owners[0]).toBeUndefined();
  });

  it('waits no longer for a master that has failed, once others have all of its slots', () => {
    const { masters } = mapOfCluster([
      view(
        '67ed 127.0.0.1:7002@17002 master,fail - 0 0 2 disconnected\ne7d1 127.0.0.1:7004@17004 master - 0 0 4 connected 5461-10922\n',
      ),
    ]);
    expect([...masters]).toEqual(['127.0.0.1:7004']);
  });

  it('reaches a node that does not know its own address where it was asked', () => {
    const { owners } = mapOfCluster([view('07c3 :7001@17001 myself,master - 0 0 1 connected 0-16383\n', 'redis-1')]);
    expect(owners[7]).toBe('redis-1:7001');
  });

  it('takes announced host names where certificates are made for them', () => {
    const { masters } = mapOfCluster([view(HEALTHY)], { preferHostnames: true });
    expect(masters).toEqual(new Set(['a.example:7001', 'b.example:7002', '::1:7003', '127.0.0.1:7005']));
  });

  it('is empty where a server says something else', () => {
    expect(mapOfCluster([view('-ERR This instance has cluster support disabled')]).masters.size).toBe(0);
  });
});

describe('address of a node', () => {
  it('may be an IPv6 address', () => {
    expect(hostAndPort('fe80::1:7001')).toEqual({ host: 'fe80::1', port: 7001 });
  });
});
