package org.metastore.peers;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/** Iceberg's own scan, which our stand-in in an optimized plan has as its delegate. */
public final class IcebergScan {
  private IcebergScan() {}

  /** Returns the delegate of a stand-in of ours, and any other scan itself. */
  public static Object unwrap(Object scan) {
    if (!Proxy.isProxyClass(scan.getClass())) {
      return scan;
    }
    InvocationHandler handler = Proxy.getInvocationHandler(scan);
    try {
      return handler.getClass().getMethod("delegate").invoke(handler);
    } catch (ReflectiveOperationException failure) {
      throw new IllegalStateException("A stand-in of ours has no delegate", failure);
    }
  }
}
